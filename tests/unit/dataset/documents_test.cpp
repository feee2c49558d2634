// Indexes of plain text: JSON Lines, and folders of text files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chiliad/base/error.h"
#include "chiliad/dataset/build_index.h"
#include "chiliad/dataset/stats.h"
#include "chiliad/dataset/verify.h"
#include "tests/unit/dataset/source_tree.h"

namespace chiliad::dataset {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DocumentsTest : public ::testing::Test {
 protected:
  IndexReport build(const std::string& what = "") {
    const auto report =
        build_index(what.empty() ? tree_.source() : tree_.source() / what, tree_.out(), {}, {});
    index_ = index::Index::open(tree_.out());
    return report;
  }
  std::string bytes_of(int64_t sample) {
    const auto held = index_.shard_of(sample);
    const index::Shard& shard = *held;
    const index::Part& part = shard.parts[index_.sample(sample).first_part];
    const auto all = io::read_text(index_.part_path(shard, part), 1 << 20);
    return all.substr(part.offset, part.length);
  }

  SourceTree tree_;
  index::Index index_;
};

TEST_F(DocumentsTest, ALineIsASample) {
  tree_.add("a.jsonl", "{\"text\": \"one\"}\n\n  \r\n{\"text\": \"two\"}\r\n{\"text\": \"three\"}");
  EXPECT_EQ(build().manifest.layout, "jsonl");
  EXPECT_EQ(index_.num_samples(), 3);
  EXPECT_EQ(index_.key(0), "a.jsonl:1");
  EXPECT_EQ(index_.key(1), "a.jsonl:4");
  EXPECT_EQ(bytes_of(1), "{\"text\": \"two\"}\r");
  EXPECT_EQ(bytes_of(2), "{\"text\": \"three\"}");
}

TEST_F(DocumentsTest, TakesOneFile) {
  tree_.add("a.jsonl", "{\"text\": \"one\"}\n");
  tree_.add("b.jsonl", "{\"text\": \"two\"}\n");
  build("b.jsonl");
  EXPECT_EQ(index_.num_samples(), 1);
}

TEST_F(DocumentsTest, FindsLinesAcrossChunks) {
  const std::string long_line = "{\"text\": \"" + std::string(3 << 20, 'x') + "\"}";
  tree_.add("a.jsonl", "{\"text\": \"one\"}\n" + long_line + "\n{\"text\": \"two\"}\n");
  build();
  EXPECT_EQ(index_.num_samples(), 3);
  EXPECT_EQ(index_.shards()[0].parts[1].length, long_line.size());
}

TEST_F(DocumentsTest, LeavesBadLinesOutWithTheirReason) {
  tree_.add("a.jsonl", "{\"text\": \"one\"}\n{\"text\": 2}\n{\"text\n{\"text\": \"\"}\n");
  const auto report = build();
  EXPECT_EQ(index_.num_samples(), 2);
  ASSERT_EQ(report.bad.size(), 3U);
  EXPECT_EQ(report.bad[0].key, "a.jsonl:2");
  EXPECT_THAT(report.bad[0].reason, HasSubstr("text: expected a string, got a number"));
  EXPECT_THAT(report.bad[1].reason, HasSubstr("expected one JSON object"));
  EXPECT_EQ(report.bad[2].reason, "document is empty");
}

TEST_F(DocumentsTest, ATextFileIsASample) {
  tree_.add("b/second.txt", "\xEF\xBB\xBFtwo\n");
  tree_.add("a.txt", "one");
  tree_.add("c.txt", "\n");
  EXPECT_EQ(build().manifest.layout, "text");
  EXPECT_EQ(index_.num_samples(), 3);
  EXPECT_EQ(index_.key(1), "b/second");
  const index::Caption& caption = index_.shards()[0].captions[1];
  EXPECT_EQ(bytes_of(1).substr(caption.offset, caption.length), "two");
  EXPECT_EQ(index_.sample(2).flags, index::kNoCaption);
}

TEST_F(DocumentsTest, CountsTokensOfTheDocumentNotOfItsLine) {
  tree_.add("a.jsonl", "{\"text\": \"a\\nb\"}\n");
  build();
  const auto encoder = text::DocumentEncoder::open("", "");
  EXPECT_EQ(build_document_columns(index_, *encoder, {}), 1);
  const auto path = index::token_column_path(tree_.out(), index_.shards()[0].content, encoder->digest());
  EXPECT_THAT(index::read_token_column(path, 1).caption_tokens, ElementsAre(4));
  EXPECT_EQ(build_document_columns(index_, *encoder, {}), 0);
}

TEST_F(DocumentsTest, StatsAddUpTokensThatAreCounted) {
  tree_.add("a.jsonl", "{\"text\": \"one\"}\n{\"text\": \"two\"}\n");
  build();
  EXPECT_TRUE(compute_stats(index_).tokens_by_tokenizer.empty());
  const auto encoder = text::DocumentEncoder::open("", "");
  (void)build_document_columns(index_, *encoder, {});
  EXPECT_THAT(compute_stats(index_).tokens_by_tokenizer, ElementsAre(std::pair(encoder->digest().hex(), 8)));
}

TEST_F(DocumentsTest, VerifiesAndCounts) {
  tree_.add("a.jsonl", "{\"text\": \"one\"}\n{\"text\": \"two\"}\n");
  build();
  EXPECT_TRUE(verify(index_, 1, {}).problems.empty());
  const Stats stats = compute_stats(index_);
  EXPECT_EQ(stats.num_documents, 2);
  EXPECT_THAT(to_table(stats), HasSubstr("2 documents"));
}

TEST_F(DocumentsTest, ReusesShardsOfTheSameFile) {
  tree_.add("a.jsonl", "{\"text\": \"one\"}\n");
  build();
  EXPECT_EQ(build().shards_reused, 1);
}

TEST_F(DocumentsTest, KeepsPicturesWithLinesBesideThemPictures) {
  tree_.add_picture("a.png", 8, 8);
  tree_.add("metadata.jsonl", "{\"text\": \"one\"}\n");
  EXPECT_EQ(build().manifest.layout, "image_text");
}

}  // namespace
}  // namespace chiliad::dataset
