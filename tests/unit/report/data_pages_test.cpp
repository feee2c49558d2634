#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "chiliad/dataset/bad_list.h"
#include "chiliad/image/encode.h"
#include "chiliad/io/file.h"
#include "chiliad/report/notable.h"
#include "chiliad/report/stats_page.h"
#include "chiliad/report/verify_page.h"
#include "tests/support/picture_bytes.h"
#include "tests/support/picture_set.h"
#include "tests/support/safetensors_lite.h"
#include "tests/support/temp_dir.h"

namespace chiliad::report {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Eight pictures, a wide one, one of which there are two, one with markup for a caption, one that is none.
class DataPagesTest : public testing::Test {
 protected:
  DataPagesTest() {
    test::write_pictures(source(), 8);
    put("wide", image::encode_png(test::sloped_picture(300, 4)), "<script>alert(1)</script> & \"so\"");
    put("twin", test::read_bytes_lite(source() / (test::picture_name(2) + ".png")), "the same");
    const std::string_view rubbish("rubbish");
    put("none", std::as_bytes(std::span(rubbish)), "no picture");
    test::index_pictures(source(), folder_.path() / "index");
    index_.emplace(index::Index::open(folder_.path() / "index"));
  }
  [[nodiscard]] std::filesystem::path source() const { return folder_.path() / "pictures"; }
  void put(const std::string& name, std::span<const std::byte> bytes, const std::string& caption) const {
    io::write_atomic(source() / (name + ".png"), bytes);
    std::ofstream(source() / (name + ".txt")) << caption;
  }
  [[nodiscard]] std::string stats() const {
    return stats_page(*index_, dataset::compute_stats(*index_), {"<cats>", "now"});
  }
  [[nodiscard]] std::string verified(size_t max_items = 200) const {
    const auto refused = dataset::read_bad_list(folder_.path() / "index" / "bad.jsonl");
    return verify_page(*index_, dataset::verify(*index_, 1, {}), refused.value(),
                       {"<cats>", "now", max_items});
  }
  [[nodiscard]] std::string key_of(const PictureRow& row) const { return index_->key(row.sample); }
  static size_t count_of(const std::string& page, const std::string& what) {
    size_t count = 0;
    for (size_t at = page.find(what); at != std::string::npos; at = page.find(what, at + 1)) ++count;
    return count;
  }
  static void expect_alone(const std::string& page) {
    EXPECT_THAT(page, Not(HasSubstr("://")));
    EXPECT_THAT(page, Not(HasSubstr("<script")));
    EXPECT_THAT(page, Not(HasSubstr("<cats>")));
    EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  }

  test::TempDir folder_;
  std::optional<index::Index> index_;
};

TEST_F(DataPagesTest, NotableAreTheExtremes) {
  const Notable found = find_notable(*index_, 100, 2);
  EXPECT_THAT(key_of(found.widest.at(0)), HasSubstr("wide"));
  EXPECT_THAT(key_of(found.smallest.at(0)), HasSubstr("wide"));  // 1,200 pixels
  EXPECT_EQ(found.tallest.at(0).height, 80);
  EXPECT_EQ(found.largest.at(0).width * found.largest.at(0).height, 80 * 40);
  EXPECT_EQ(found.smallest.size(), 2U);
  ASSERT_EQ(found.unusable.size(), 1U);
  EXPECT_THAT(key_of(found.unusable[0]), HasSubstr("none"));
}

TEST_F(DataPagesTest, PicturesWithTheSameBytesAreOneGroup) {
  const Notable found = find_notable(*index_, 100, 8);
  ASSERT_EQ(found.same_pictures.size(), 1U);
  EXPECT_EQ(found.same_pictures[0].count, 2);
  EXPECT_EQ(found.num_same_pictures, 1);
  EXPECT_EQ(found.drawn.size(), 9U);  // of eleven: one of the two, and not what is no picture
  EXPECT_TRUE(found.same_keys.empty());
}

TEST_F(DataPagesTest, TheSamePicturesAreDrawnEachTime) {
  const auto keys = [&] {
    std::vector<std::string> found;
    for (const PictureRow& row : find_notable(*index_, 4, 2).drawn) found.push_back(key_of(row));
    return found;
  };
  EXPECT_EQ(keys().size(), 4U);
  EXPECT_EQ(keys(), keys());
}

TEST_F(DataPagesTest, StatsShowNumbersHistogramsAndPictures) {
  const std::string page = stats();
  expect_alone(page);
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;so&quot;"));
  EXPECT_THAT(page, HasSubstr("Pictures by size"));
  EXPECT_THAT(page, HasSubstr("Captions by length"));
  EXPECT_THAT(page, HasSubstr("Widest pictures"));
  EXPECT_THAT(page, HasSubstr("300 x 4 pixels, PNG"));
  EXPECT_THAT(page, HasSubstr("2 samples:"));
  EXPECT_GT(count_of(page, "data:image/png;base64,"), 9U);
}

TEST_F(DataPagesTest, StatsAreTheSameEachTime) {
  EXPECT_EQ(stats(), stats());
}

TEST_F(DataPagesTest, OnlySoManyPicturesAreDrawn) {
  const auto numbers = dataset::compute_stats(*index_);
  const std::string page = stats_page(*index_, numbers, {"cats", "now", 3, 0});
  EXPECT_EQ(count_of(page, "data:image/png;base64,"), 3U);
}

TEST_F(DataPagesTest, AGoodSetIsVerified) {
  EXPECT_THAT(verified(), HasSubstr("Every byte is what was indexed."));
}

TEST_F(DataPagesTest, VerifyShowsWhatIsDamagedAndWhy) {
  test::flip_bit(source() / (test::picture_name(3) + ".png"));
  const std::string page = verified();
  expect_alone(page);
  EXPECT_THAT(page, HasSubstr("bytes at 0: checksum"));
  EXPECT_THAT(page, HasSubstr("N bytes at N: checksum N, expected N"));
  EXPECT_THAT(page, HasSubstr(test::picture_name(3)));
  EXPECT_EQ(count_of(page, "data:image/png;base64,"), 1U);
}

TEST_F(DataPagesTest, VerifyShowsWhatWasRefusedWhenItWasIndexed) {
  const std::string page = verified();
  EXPECT_THAT(page, HasSubstr("not an image that can be read"));
  EXPECT_THAT(page, HasSubstr("nothing of it decodes"));
}

TEST_F(DataPagesTest, AMissingFileIsAProblemWithoutPicture) {
  std::filesystem::remove(source() / "twin.png");
  EXPECT_THAT(verified(), HasSubstr("is missing"));
}

TEST_F(DataPagesTest, WhatIsNotShownIsCounted) {
  for (const int64_t number : {1, 3, 4}) test::flip_bit(source() / (test::picture_name(number) + ".png"));
  EXPECT_THAT(verified(1), HasSubstr("2 more are not shown (--max-items)."));
}

TEST(ReasonPatternTest, LeavesOutNumbers) {
  EXPECT_EQ(reason_pattern("12 bytes at 0: checksum 00ff3a, expected abc1"),
            "N bytes at N: checksum N, expected N");
  EXPECT_EQ(reason_pattern("png: row 7: bad data"), "png: row N: bad data");
  EXPECT_EQ(reason_pattern("utf8 is fine"), "utf8 is fine");
}

}  // namespace
}  // namespace chiliad::report
