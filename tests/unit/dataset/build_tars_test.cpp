// Tars that are built from an index: what is in them, what is dropped, and going on after an interruption.
#include "chiliad/dataset/build_tars.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "chiliad/base/error.h"
#include "chiliad/dataset/detail/near_duplicates.h"
#include "chiliad/dataset/detail/tar_reader.h"
#include "chiliad/dataset/detail/tar_writer.h"
#include "chiliad/dataset/detail/where.h"
#include "chiliad/image/image.h"
#include "tests/support/kits.h"
#include "tests/support/safetensors_lite.h"
#include "tests/unit/dataset/source_tree.h"

namespace chiliad::dataset {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class BuildTarsTest : public ::testing::Test {
 protected:
  BuildTarsTest() {
    for (int i = 0; i < 6; ++i) {
      const std::string name(1, static_cast<char>('a' + i));
      add_stripes(name + ".png", 8 * (i + 1), 16, i);
      tree_.add(name + ".txt", "picture " + name);
    }
  }

  /// Pictures that differ, also in their hashes.
  void add_stripes(const std::string& name, int64_t width, int64_t height, int seed) const {
    HostArray picture(DType::kU8, {height, width, 3});
    auto values = picture.as<uint8_t>();
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t x = i / 3 % static_cast<size_t>(width);
      values[i] = static_cast<uint8_t>(
          (x * 9 / static_cast<size_t>(width) * static_cast<size_t>(seed * 2 + 1)) % 5 * 60);
    }
    const auto bytes = image::encode_png(picture);
    tree_.add(name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

  void index() {
    static_cast<void>(build_index(tree_.source(), tree_.out(), {}, {}));
    index_ = index::Index::open(tree_.out());
  }
  TarReport build(const std::string& name = "built", const Progress& progress = {}) {
    if (index_.num_samples() == 0) index();
    return build_tars(index_, folder_.path() / name, options_, progress);
  }
  std::vector<std::string> members(const std::string& tar) const {
    std::vector<std::string> names;
    for (const auto& member :
         detail::list_tar(io::File::open_read(folder_.path() / "built/tars" / tar)).members)
      names.push_back(member.name);
    return names;
  }
  std::string all_bytes(const std::string& name) const {
    std::string bytes;
    for (int i = 0; i < 100; ++i) {
      const auto path = folder_.path() / name / "tars" / fmt::format("{:06d}.tar", i);
      if (io::stat_file(path).has_value()) bytes += io::read_text(path, 1 << 24);
    }
    return bytes;
  }

  SourceTree tree_;
  test::TempDir folder_;
  TarOptions options_;
  index::Index index_;
};

TEST_F(BuildTarsTest, WritesPictureAndCaptionOfEachSample) {
  EXPECT_EQ(build().num_samples, 6);
  EXPECT_THAT(std::vector<std::string>(members("000000.tar")).front(), "000000000.png");
  EXPECT_EQ(members("000000.tar").size(), 12U);
}

TEST_F(BuildTarsTest, ReadsBackAsTheSameData) {
  build();
  static_cast<void>(build_index(folder_.path() / "built/tars", folder_.path() / "again", {}, {}));
  const auto again = index::Index::open(folder_.path() / "again");
  ASSERT_EQ(again.num_samples(), 6);
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(again.image_part(i)->checksum, index_.image_part(i)->checksum);
    EXPECT_EQ(again.sample(i).flags, index::kHasImage);
  }
}

TEST_F(BuildTarsTest, CutsTarsAtTheirSize) {
  options_.tar_bytes = 1;
  EXPECT_EQ(build().num_tars, 6);
  EXPECT_THAT(members("000002.tar"), ElementsAre("000000002.png", "000000002.txt"));
}

TEST_F(BuildTarsTest, DropsWhatDoesNotMeetTheCondition) {
  options_.where = "width > 16 and not width == 32";
  const auto report = build();
  EXPECT_EQ(report.num_samples, 3);
  EXPECT_EQ(report.dropped.at("where"), 3);
  EXPECT_THAT(io::read_text(folder_.path() / "built/dropped.jsonl", 1 << 20), HasSubstr("\"key\":\"a\""));
}

TEST_F(BuildTarsTest, DropsPicturesThatCannotBeDecodedAndMissingCaptions) {
  tree_.add("x.png", "no picture");
  tree_.add("x.txt", "x");
  add_stripes("y.png", 8, 8, 1);
  const auto report = build();
  EXPECT_EQ(report.dropped.at("image"), 1);
  EXPECT_EQ(report.dropped.at("caption"), 1);
}

TEST_F(BuildTarsTest, ResizesLargePicturesOnly) {
  options_.longest_side = 24;
  EXPECT_EQ(build().num_resized, 3);
  static_cast<void>(build_index(folder_.path() / "built/tars", folder_.path() / "again", {}, {}));
  const auto again = index::Index::open(folder_.path() / "again");
  EXPECT_EQ(again.image_part(5)->width, 24U);
  EXPECT_EQ(again.image_part(5)->height, 8U);
}

TEST_F(BuildTarsTest, AResizedPictureKeepsItsProfile) {
  const auto kit = test::golden_kit() / "colour_profiles" / "colour_profiles.safetensors";
  const auto bytes = test::read_safetensors_lite(kit).at("p3.png/file").bytes;  // 29 x 21
  tree_.add("a.png", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  options_.longest_side = 24;
  static_cast<void>(build());
  static_cast<void>(build_index(folder_.path() / "built/tars", folder_.path() / "again", {}, {}));
  const auto again = index::Index::open(folder_.path() / "again");
  EXPECT_EQ(again.image_part(0)->width, 24U);
  EXPECT_EQ(again.image_part(0)->image_flags, image::kIccProfile | image::kIccP3);
  EXPECT_EQ(again.image_part(1)->image_flags, 0);
}

TEST_F(BuildTarsTest, DropsNearDuplicates) {
  add_stripes("p.png", 90, 16, 1);
  add_stripes("q.png", 180, 64, 1);  // the same, larger
  add_stripes("r.png", 90, 16, 3);
  for (const char* name : {"p.txt", "q.txt", "r.txt"}) tree_.add(name, name);
  options_.duplicate_bits = 2;
  options_.where = "width >= 90";
  const auto report = build();
  EXPECT_EQ(report.dropped.at("duplicate"), 1);
  EXPECT_THAT(io::read_text(folder_.path() / "built/dropped.jsonl", 1 << 20), HasSubstr("looks like p"));
}

TEST_F(BuildTarsTest, MakesTheSameBytesAtAnyNumberOfThreads) {
  options_.tar_bytes = 4000;
  build("one");
  options_.threads = 3;
  build("three");
  EXPECT_EQ(all_bytes("one"), all_bytes("three"));
}

TEST_F(BuildTarsTest, GoesOnAfterAnInterruption) {
  options_.tar_bytes = 1;
  options_.duplicate_bits = 0;
  for (int i = 0; i < 40; ++i) {
    add_stripes(fmt::format("z{:02d}.png", i), 8 + i, 8, i);
    tree_.add(fmt::format("z{:02d}.txt", i), "z");
  }
  build("whole");
  options_.threads = 1;
  const auto stop = [](int64_t, int64_t) { throw std::runtime_error("stopped"); };
  EXPECT_THROW(build("built", stop), std::runtime_error);
  io::remove_file(folder_.path() / "built/tars/000003.tar");
  const auto report = build("built");
  EXPECT_EQ(report.tars_reused, 3);
  EXPECT_EQ(all_bytes("built"), all_bytes("whole"));
  EXPECT_EQ(io::read_text(folder_.path() / "built/dropped.jsonl", 1 << 20),
            io::read_text(folder_.path() / "whole/dropped.jsonl", 1 << 20));
}

TEST_F(BuildTarsTest, RefusesTheFolderOfAnotherBuild) {
  build();
  options_.longest_side = 8;
  EXPECT_THROW(build(), InvalidInput);
}

TEST_F(BuildTarsTest, RefusesCaptionsByLanguage) {
  tree_.add("a.txt", "A cat.\nde.utf8=Eine Katze.\n");
  EXPECT_THROW(build(), InvalidInput);
}

TEST_F(BuildTarsTest, RefusesASourceThatChanged) {
  index();
  add_stripes("c.png", 24, 16, 9);
  EXPECT_THROW(build(), Error);
}

TEST(TarWriterTest, WritesLongNamesAsPax) {
  const test::TempDir folder;
  const std::string name(185, 'n');
  detail::TarWriter writer(folder.path() / "a.tar");
  writer.add(name, std::as_bytes(std::span("abc", 3)));
  writer.add("b", {});
  const int64_t size = writer.finish();
  EXPECT_EQ(size, io::stat_file(folder.path() / "a.tar")->size);
  const auto listing = detail::list_tar(io::File::open_read(folder.path() / "a.tar"));
  ASSERT_EQ(listing.members.size(), 2U);
  EXPECT_EQ(listing.members[0].name, name);
  EXPECT_EQ(listing.members[0].length, 3U);
  EXPECT_TRUE(listing.damages.empty());
}

TEST(TarWriterTest, LeavesNothingBeforeItIsFinished) {
  const test::TempDir folder;
  detail::TarWriter writer(folder.path() / "a.tar");
  EXPECT_FALSE(io::stat_file(folder.path() / "a.tar").has_value());
}

bool holds(const std::string& text) {
  index::Part part;
  part.width = 300;
  part.height = 200;
  part.length = 1000;
  return detail::Where::parse(text).holds({2, &part, 40});
}
std::string where_refusal(const std::string& text) {
  try {
    static_cast<void>(detail::Where::parse(text));
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return {};
}

TEST(WhereTest, ComparesColumns) {
  EXPECT_TRUE(holds("width >= 256 and aspect <= 2"));
  EXPECT_FALSE(holds("width >= 256 and aspect <= 1.4"));
  EXPECT_TRUE(holds("captions == 2"));
  EXPECT_TRUE(holds("caption_bytes != 41"));
}

TEST(WhereTest, BindsAsIsUsual) {
  EXPECT_TRUE(holds("width > 1 or width > 9999 and height > 9999"));
  EXPECT_FALSE(holds("(width > 1 or width > 9999) and height > 9999"));
  EXPECT_TRUE(holds("width - 100 * 2 == height / 2"));
  EXPECT_TRUE(holds("not not -width < 0"));
}

TEST(WhereTest, TakesNothingForAll) {
  EXPECT_TRUE(holds(" "));
}

TEST(WhereTest, SaysWhereItIsWrong) {
  EXPECT_THAT(where_refusal("width >= 256 and heigth < 2"), HasSubstr("character 18"));
  EXPECT_THAT(where_refusal("width = 256"), HasSubstr("expected == to compare"));
  EXPECT_THAT(where_refusal("(width > 1"), HasSubstr("expected )"));
  EXPECT_THAT(where_refusal("width > 1 height"), HasSubstr("expected and, or"));
  EXPECT_THAT(where_refusal("width >"), HasSubstr("expected a number or one of width"));
  EXPECT_THAT(where_refusal(std::string(100'000, '(')), HasSubstr("levels"));
}

TEST(NearDuplicatesTest, FindsTheFirstThatIsNear) {
  detail::NearDuplicates near(2);
  near.keep(0);
  near.keep(0b111);
  EXPECT_EQ(near.find(0b100), 0U);
  EXPECT_EQ(near.find(0b111111), std::nullopt);
  EXPECT_EQ(near.find(0b11111), 1U);
}

TEST(NearDuplicatesTest, FindsAnyPlaceOfTheBits) {
  detail::NearDuplicates near(7);
  near.keep(0x0123456789ABCDEF);
  EXPECT_EQ(near.find(0x0123456789ABCDEF ^ 0x0101010101010100), 0U);
  EXPECT_EQ(near.find(0x0123456789ABCDEF ^ 0x0101010101010101), std::nullopt);
}

}  // namespace
}  // namespace chiliad::dataset
