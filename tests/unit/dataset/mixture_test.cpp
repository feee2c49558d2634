// Indexes of mixtures of conversations, and what conversations with several pictures become.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "chiliad/base/error.h"
#include "chiliad/dataset/bad_summary.h"
#include "chiliad/dataset/build_index.h"
#include "chiliad/dataset/conversation_columns.h"
#include "tests/unit/dataset/source_tree.h"

namespace chiliad::dataset {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string record(int number, const std::string& image = "") {
  return "{\"id\": " + std::to_string(number) + ", " + (image.empty() ? "" : "\"image\": " + image + ", ") +
         R"("conversations": [{"from": "human", "value": "What?"}, {"from": "gpt", "value": "This."}]})";
}

class MixtureTest : public ::testing::Test {
 protected:
  MixtureTest() {
    tree_.add_picture("pictures/a.png", 12, 8);
    tree_.add_picture("pictures/b.png", 8, 12);
    std::string list = "[";
    std::string lines;
    for (int i = 1; i <= 10; ++i) {
      list += (i > 1 ? "," : "") + record(i);
      lines += record(i, "\"a.png\"") + "\n";
    }
    tree_.add("list.json", list + "]");
    tree_.add("more/lines.jsonl", lines);
  }
  IndexReport build(const std::string& mixture, const std::string& name = "mix.yaml") {
    tree_.add(name, mixture);
    options_.images = tree_.source() / "pictures";
    auto report = build_index(tree_.source() / name, tree_.out(), options_, {});
    index_ = index::Index::open(tree_.out());
    return report;
  }
  std::string refusal(const std::string& mixture) {
    try {
      build(mixture);
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return {};
  }
  std::vector<std::string> keys() const {
    std::vector<std::string> found;
    for (int64_t i = 0; i < index_.num_samples(); ++i) found.push_back(index_.key(i));
    return found;
  }

  SourceTree tree_;
  IndexOptions options_;
  index::Index index_;
};

TEST_F(MixtureTest, TakesWhatItSaysInItsOrder) {
  const auto report = build(
      "datasets:\n"
      "  - {json_path: more/lines.jsonl, sampling_strategy: \"end:20%\"}\n"
      "  - {json_path: list.json, sampling_strategy: \"first:3\"}\n");
  EXPECT_EQ(report.manifest.layout, "conversations");
  EXPECT_THAT(keys(), ElementsAre("more/lines.jsonl:9", "more/lines.jsonl:10", "list.json:1", "list.json:2",
                                  "list.json:3"));
}

TEST_F(MixtureTest, RandomRecordsAreTheSameAtEveryCall) {
  const std::string mixture = "- {json_path: list.json, sampling_strategy: \"random:4\"}";
  build(mixture);
  const auto first = keys();
  EXPECT_EQ(first.size(), 4U);
  EXPECT_TRUE(std::is_sorted(first.begin(), first.end()) || first.back() == "list.json:10");
  options_.replace = true;
  options_.shard_bytes = 1;
  build(mixture);
  EXPECT_EQ(keys(), first);
  EXPECT_NE(first, (std::vector<std::string>{"list.json:1", "list.json:2", "list.json:3", "list.json:4"}));
}

TEST_F(MixtureTest, AFileMayBeNamedTwice) {
  build(
      "- {json_path: list.json, sampling_strategy: \"first:1\"}\n- {json_path: list.json, "
      "sampling_strategy: \"first:2\"}");
  EXPECT_THAT(keys(), ElementsAre("list.json:1", "list.json:1#2", "list.json:2#2"));
}

TEST_F(MixtureTest, AnotherMixtureIsIndexedAnew) {
  build("- {json_path: list.json, sampling_strategy: \"first:2\"}");
  EXPECT_EQ(build("- {json_path: list.json, sampling_strategy: \"first:2\"}").shards_reused, 1);
  EXPECT_EQ(build("- {json_path: list.json, sampling_strategy: \"end:2\"}").shards_reused, 0);
  EXPECT_THAT(keys(), ElementsAre("list.json:9", "list.json:10"));
}

TEST_F(MixtureTest, ReadsAMixtureInJson) {
  build(R"([{"json_path": "list.json", "sampling_strategy": "first:1"}])", "mix.json");
  EXPECT_THAT(keys(), ElementsAre("list.json:1"));
}

TEST_F(MixtureTest, RefusesFilesThatAreNotThere) {
  EXPECT_THAT(refusal("- {json_path: gone.json}"), HasSubstr("mix.yaml:1:3: json_path: "));
  EXPECT_THAT(refusal("- {json_path: gone.json}"), HasSubstr("gone.json is missing"));
  EXPECT_THAT(refusal("- {json_path: pictures/a.png}"), HasSubstr("expected a .json or .jsonl"));
}

// Several pictures

TEST_F(MixtureTest, ARecordMayHaveAHundredPicturesAndTheSameOneTwice) {
  std::string names;
  for (int i = 0; i < 100; ++i)
    names += std::string(i > 0 ? "," : "") + (i % 2 == 0 ? "\"a.png\"" : "\"b.png\"");
  tree_.add("many.json", "[" + record(1, "[" + names + "]") + "," + record(2, "[]") + "," +
                             record(3, "[\"a.png\", \"a.png\"]") + "]");
  EXPECT_THAT(build("- json_path: many.json").bad, IsEmpty());
  EXPECT_EQ(index_.sample(0).num_parts, 101);
  EXPECT_EQ(index_.sample(1).num_parts, 1);
  EXPECT_EQ(index_.sample(2).num_parts, 3);
}

TEST_F(MixtureTest, EachBadRecordHasOneReasonAndKindsAreCounted) {
  tree_.add("bad.json",
            "[" + record(1) + "," + record(2, "[\"a.png\", \"gone.png\"]") + "," + record(3, "\"lost.png\"") +
                "," +
                R"({"image": ["a.png"], "conversations": [{"from": "human", "value": "<image><image>"},
                               {"from": "gpt", "value": "x"}]})" +
                "]");
  const auto report = build("- json_path: bad.json");
  EXPECT_EQ(report.bad.size(), 3U);
  const auto kinds = count_reasons(report.bad, 9);
  ASSERT_EQ(kinds.size(), 2U);
  EXPECT_EQ(kinds[0].kind, "image: is missing");
  EXPECT_EQ(kinds[0].count, 2);
  EXPECT_EQ(kinds[1].kind, "has N marks <image> and N pictures: expected as many");
}

// Counts

TEST_F(MixtureTest, CountsPositionsAndTilesOfAllPictures) {
  tree_.add("two.json", "[" + record(1, "[\"a.png\", \"b.png\"]") + "," + record(2) + "]");
  build("- json_path: two.json");
  const image::VisionView view{28, 14, image::VisionFit::kPad};
  const auto encoder = text::ConversationEncoder::open(
      {.tokenizer = "", .chat_template = "plain", .max_ids = 100, .pictures = view.digest()});
  EXPECT_EQ(build_conversation_columns(index_, *encoder, view, {}), 1);
  EXPECT_EQ(build_conversation_columns(index_, *encoder, view, {}), 0);
  const auto column = [&](const Digest& key) {
    const auto content = index_.shards()[0].content;
    return index::read_token_column(index::token_column_path(index_.folder(), content, key), 2)
        .caption_tokens;
  };
  // "This." and a line end are 6 bytes; a picture is 2 x 2 patches.
  EXPECT_THAT(column(encoder->keys().ids), ElementsAre(14U, 6U));
  EXPECT_THAT(column(encoder->keys().positions), ElementsAre(8U, 0U));
  EXPECT_THAT(column(encoder->keys().tiles), ElementsAre(2U, 0U));
}

TEST_F(MixtureTest, ConversationsWithAPictureThatCannotBeUsedCountNothing) {
  tree_.add("pictures/bad.png", "no picture");
  tree_.add("one.json", "[" + record(1, "[\"a.png\", \"bad.png\"]") + "]");
  build("- json_path: one.json");
  const image::VisionView view{28, 14, image::VisionFit::kPad};
  const auto encoder = text::ConversationEncoder::open(
      {.tokenizer = "", .chat_template = "plain", .max_ids = 100, .pictures = view.digest()});
  build_conversation_columns(index_, *encoder, view, {});
  const auto path =
      index::token_column_path(index_.folder(), index_.shards()[0].content, encoder->keys().ids);
  EXPECT_THAT(index::read_token_column(path, 1).caption_tokens, ElementsAre(0U));
}

}  // namespace
}  // namespace chiliad::dataset
