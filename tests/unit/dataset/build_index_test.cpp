#include "chiliad/dataset/build_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "chiliad/base/error.h"
#include "chiliad/io/file.h"
#include "chiliad/text/byte_tokenizer.h"
#include "tests/unit/dataset/source_tree.h"

namespace chiliad::dataset {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class BuildIndexTest : public ::testing::Test {
 protected:
  BuildIndexTest() {
    tree_.add_picture("animals/cat.png", 40, 30);
    tree_.add("animals/cat.txt", "A cat.\nde.utf8=Eine Katze.\nzh_CN.utf8=Mao\n");
    tree_.add_picture("animals/dog.png", 16, 16);
    tree_.add("animals/dog.txt", "A dog.\nde.utf8=Ein Hund.\n");
    tree_.add_picture("sun.png", 8, 24);
  }

  IndexReport build() const { return build_index(tree_.source(), tree_.out(), options_, {}); }
  index::Index build_and_open() const {
    (void)build();
    return index::Index::open(tree_.out());
  }
  std::string refusal() const {
    try {
      (void)build();
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return {};
  }

  SourceTree tree_;
  IndexOptions options_;
};

std::vector<std::string> keys_of(const index::Index& index) {
  std::vector<std::string> keys;
  for (int64_t i = 0; i < index.num_samples(); ++i) keys.push_back(index.key(i));
  return keys;
}

std::string caption_text(const index::Index& index, int64_t sample, const std::string& language) {
  const auto held = index.shard_of(sample);
  const index::Shard& shard = *held;
  const index::Sample& row = index.sample(sample);
  for (uint32_t c = row.first_caption; c < row.first_caption + row.num_captions; ++c) {
    const index::Caption& caption = shard.captions[c];
    if (index::language_name(caption.language) != language) continue;
    const std::string text = io::read_text(index.part_path(shard, shard.parts[caption.part]), 1 << 20);
    return text.substr(caption.offset, caption.length);
  }
  return "none";
}

TEST_F(BuildIndexTest, ListsSamplesInOrderOfTheirPaths) {
  EXPECT_THAT(keys_of(build_and_open()), ElementsAre("animals/cat", "animals/dog", "sun"));
}

TEST_F(BuildIndexTest, KnowsStampsByTheirLanguageLines) {
  EXPECT_EQ(build().manifest.layout, "tuxpaint");
}

TEST_F(BuildIndexTest, RecordsPictureSizes) {
  const auto index = build_and_open();
  EXPECT_EQ(index.image_part(0)->width, 40U);
  EXPECT_EQ(index.image_part(0)->height, 30U);
}

TEST_F(BuildIndexTest, PointsCaptionsIntoTheirFiles) {
  EXPECT_EQ(caption_text(build_and_open(), 0, "de"), "Eine Katze.");
}

TEST_F(BuildIndexTest, FlagsAndReportsAPictureWithoutCaption) {
  const IndexReport report = build();
  EXPECT_EQ(report.manifest.num_bad, 1);
  EXPECT_EQ(report.bad.at(0).reason, "caption is missing");
  EXPECT_EQ(index::Index::open(tree_.out()).sample(2).flags, index::kHasImage | index::kNoCaption);
}

TEST_F(BuildIndexTest, KeepsTheOthersWhenAPictureIsBad) {
  tree_.add("animals/broken.png", "this is no picture");
  tree_.add("animals/broken.txt", "A wreck.");
  const auto index = build_and_open();
  EXPECT_THAT(keys_of(index), ElementsAre("animals/broken", "animals/cat", "animals/dog", "sun"));
  EXPECT_EQ(index.sample(0).flags, index::kHasImage | index::kBadImage);
}

TEST_F(BuildIndexTest, WritesTheReasonsToBadJsonl) {
  tree_.add("animals/broken.png", "");
  (void)build();
  EXPECT_THAT(io::read_text(tree_.out() / "bad.jsonl", 1 << 20), HasSubstr("image: has no bytes"));
}

TEST_F(BuildIndexTest, TakesPlainCaptionsWithoutLanguage) {
  tree_.add("animals/cat.txt", "\xEF\xBB\xBF a cat\n");
  tree_.add("animals/dog.txt", "a dog");
  const auto index = build_and_open();
  EXPECT_EQ(index.manifest().layout, "image_text");
  EXPECT_EQ(caption_text(index, 0, ""), "a cat");
}

TEST_F(BuildIndexTest, TakesNamesAsBytes) {
  tree_.add_picture("caf\xE9.png", 8, 8);
  EXPECT_THAT(keys_of(build_and_open()), ElementsAre("animals/cat", "animals/dog", "caf\xE9", "sun"));
}

TEST_F(BuildIndexTest, TellsPicturesOfOneStemApart) {
  tree_.add_picture("sun.PNG", 8, 8);
  EXPECT_THAT(keys_of(build_and_open()), ElementsAre("animals/cat", "animals/dog", "sun.PNG", "sun.png"));
}

TEST_F(BuildIndexTest, PassesOverHiddenFiles) {
  tree_.add(".hidden/x.png", "rubbish");
  tree_.add("._cat.png", "rubbish");
  EXPECT_EQ(build().manifest.num_samples, 3);
}

TEST_F(BuildIndexTest, CutsBlocksByPayload) {
  options_.block_bytes = 1;
  EXPECT_EQ(build_and_open().shards().at(0).blocks.size(), 3U);
}

TEST_F(BuildIndexTest, CutsShardsByPayload) {
  options_.shard_bytes = 1;
  const auto index = build_and_open();
  EXPECT_EQ(index.shards().size(), 3U);
  EXPECT_THAT(keys_of(index), ElementsAre("animals/cat", "animals/dog", "sun"));
}

TEST_F(BuildIndexTest, IsTheSameForAnyNumberOfThreads) {
  for (int i = 0; i < 100; ++i) tree_.add_picture("many/" + std::to_string(i) + ".png", 8 + i % 5, 8);
  options_.threads = 1;
  const Digest one = build().manifest.digest;
  std::filesystem::remove_all(tree_.out());
  options_.threads = 4;
  EXPECT_EQ(build().manifest.digest, one);
}

TEST_F(BuildIndexTest, DigestIgnoresTimes) {
  const Digest before = build().manifest.digest;
  tree_.add_picture("sun.png", 8, 24);
  EXPECT_EQ(build().manifest.digest, before);
}

TEST_F(BuildIndexTest, DigestSeesAChangedCaption) {
  const Digest before = build().manifest.digest;
  tree_.add("animals/cat.txt", "A Cat.\nde.utf8=Eine Katze.\nzh_CN.utf8=Mao\n");
  EXPECT_NE(build().manifest.digest, before);
}

TEST_F(BuildIndexTest, ReadsNothingAgainWithoutChange) {
  (void)build();
  const IndexReport again = build();
  EXPECT_EQ(again.bytes_read, 0);
  EXPECT_EQ(again.bad.size(), 1U);
}

TEST_F(BuildIndexTest, ReusesFinishedShardsAfterAnInterruption) {
  options_.shard_bytes = 1;
  const Progress stop_at_second = [](int64_t done, int64_t total) {
    if (done * 2 > total) throw std::runtime_error("stop");
  };
  EXPECT_THROW(build_index(tree_.source(), tree_.out(), options_, stop_at_second), std::runtime_error);
  EXPECT_FALSE(std::filesystem::exists(tree_.out() / "manifest.json"));
  EXPECT_GE(build().shards_reused, 1);
}

TEST_F(BuildIndexTest, MakesADamagedSidecarAgain) {
  (void)build();
  io::write_atomic(tree_.out() / "shards" / "000000.chidx", "rubbish");
  EXPECT_EQ(build().shards_reused, 0);
  EXPECT_EQ(index::Index::open(tree_.out()).num_samples(), 3);
}

TEST_F(BuildIndexTest, RemovesSidecarsThatAreNoLongerNamed) {
  options_.shard_bytes = 1;
  (void)build();
  options_.shard_bytes = 1 << 20;
  (void)build();
  EXPECT_FALSE(std::filesystem::exists(tree_.out() / "shards" / "000002.chidx"));
}

TEST_F(BuildIndexTest, ReportsAllBytesAsProgress) {
  int64_t last = 0;
  int64_t whole = -1;
  (void)build_index(tree_.source(), tree_.out(), options_, [&](int64_t done, int64_t total) {
    last = done;
    whole = total;
  });
  EXPECT_EQ(last, whole);
}

TEST_F(BuildIndexTest, RefusesAnIndexInsideTheSource) {
  try {
    (void)build_index(tree_.source(), tree_.source() / "a" / ".." / "index", options_, {});
    FAIL() << "no refusal";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("lies inside the source"));
  }
  EXPECT_FALSE(std::filesystem::exists(tree_.source() / "index"));
}

TEST_F(BuildIndexTest, RefusesToReplaceTheIndexOfAnotherSource) {
  const Digest first = build().manifest.digest;
  SourceTree other;
  other.add_picture("sea.png", 8, 8);
  other.add("sea.txt", "The sea.");
  try {
    (void)build_index(other.source(), tree_.out(), options_, {});
    FAIL() << "no refusal";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("holds the index of " + tree_.source().string()));
  }
  EXPECT_EQ(index::Index::open(tree_.out()).manifest().digest, first);
  options_.replace = true;
  EXPECT_EQ(build_index(other.source(), tree_.out(), options_, {}).manifest.num_samples, 1);
}

TEST_F(BuildIndexTest, RefusesASourceWithoutSamples) {
  std::filesystem::remove_all(tree_.source());
  tree_.add("readme.md", "nothing here");
  EXPECT_THAT(refusal(), HasSubstr("holds no sample"));
}

TEST_F(BuildIndexTest, RefusesToGuessBetweenTarsAndPictures) {
  tree_.add("x.tar", std::string(1024, '\0'));
  EXPECT_THAT(refusal(), HasSubstr("3 pictures and 1 tars"));
}

TEST_F(BuildIndexTest, RefusesAnUnknownLayout) {
  options_.layout = "parquet";
  EXPECT_THAT(refusal(), HasSubstr("got 'parquet'"));
}

TEST_F(BuildIndexTest, CountsTokensOfEveryCaption) {
  const auto index = build_and_open();
  EXPECT_EQ(build_token_columns(index, 8, {}), 1);
  const auto path =
      index::token_column_path(tree_.out(), index.shards()[0].content, text::ByteTokenizer(8).digest());
  EXPECT_THAT(index::read_token_column(path, 5).caption_tokens, ElementsAre(6, 8, 3, 6, 8));
}

TEST_F(BuildIndexTest, CountsTokensOnlyOnce) {
  const auto index = build_and_open();
  (void)build_token_columns(index, 8, {});
  EXPECT_EQ(build_token_columns(index, 8, {}), 0);
}

TEST_F(BuildIndexTest, RefusesToCountChangedText) {
  const auto index = build_and_open();
  tree_.add("animals/dog.txt", "A fox.\nde.utf8=Ein Hund.\n");
  EXPECT_THROW(build_token_columns(index, 8, {}), CorruptData);
}

}  // namespace
}  // namespace chiliad::dataset
