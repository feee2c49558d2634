// Indexes of pictures that records, rows or folders name: tables, conversations, kohya's folders.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chiliad/base/error.h"
#include "chiliad/base/rng.h"
#include "chiliad/dataset/build_index.h"
#include "chiliad/dataset/stats.h"
#include "chiliad/dataset/verify.h"
#include "chiliad/index/caption_text.h"
#include "chiliad/text/conversation.h"
#include "tests/unit/dataset/source_tree.h"

namespace chiliad::dataset {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FormatsTest : public ::testing::Test {
 protected:
  IndexReport build(const std::string& what = "") {
    auto report =
        build_index(what.empty() ? tree_.source() : tree_.source() / what, tree_.out(), options_, {});
    index_ = index::Index::open(tree_.out());
    return report;
  }
  std::string refusal(const std::string& what = "") {
    try {
      build(what);
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
  std::string stored_bytes(const index::Shard& shard, const index::Part& part) const {
    return io::read_text(index_.part_path(shard, part), 64 << 20).substr(part.offset, part.length);
  }
  std::vector<std::string> captions(int64_t sample) const {
    const auto held = index_.shard_of(sample);
    const index::Shard& shard = *held;
    const index::Sample& row = index_.sample(sample);
    std::vector<std::string> found;
    for (uint32_t c = row.first_caption; c < row.first_caption + row.num_captions; ++c) {
      const index::Caption& caption = shard.captions[c];
      const index::Part& part = shard.parts[caption.part];
      const auto text = index::caption_text(
          part.media, std::string_view(stored_bytes(shard, part)).substr(caption.offset, caption.length));
      EXPECT_EQ(text.refusal, "");
      found.push_back(text.text);
    }
    return found;
  }
  void add_pictures(const std::vector<std::string>& names) const {
    for (const auto& name : names) tree_.add_picture(name, 12, 8);
  }

  SourceTree tree_;
  IndexOptions options_;
  index::Index index_;
};

// Tables

TEST_F(FormatsTest, ReadsMetadataBesidePictures) {
  add_pictures({"train/a.png", "train/sub/b.png"});
  tree_.add("train/metadata.jsonl",
            "{\"file_name\": \"a.png\", \"text\": \"an \\\"a\\\" \\u00e9\"}\n"
            "{\"file_name\": \"sub/b.png\", \"text\": \"b\"}\n");
  EXPECT_EQ(build().manifest.layout, "table");
  EXPECT_THAT(keys(), ElementsAre("train/metadata.jsonl:1", "train/metadata.jsonl:2"));
  EXPECT_THAT(captions(0), ElementsAre("an \"a\" \xC3\xA9"));
  EXPECT_EQ(index_.image_part(1)->width, 12U);
}

TEST_F(FormatsTest, ReadsSeveralCaptionsOfARow) {
  add_pictures({"a.png"});
  tree_.add("metadata.jsonl",
            "{\"file_name\": \"a.png\", \"caption\": [\"one\", \"two\"], \"text\": \"no\"}\n");
  build();
  EXPECT_THAT(captions(0), ElementsAre("one", "two"));
}

TEST_F(FormatsTest, ReportsPicturesThatNoRowNames) {
  add_pictures({"a.png", "b.png"});
  tree_.add("metadata.jsonl", "{\"file_name\": \"a.png\", \"text\": \"a\"}\n");
  const auto report = build();
  ASSERT_EQ(report.bad.size(), 1U);
  EXPECT_EQ(report.bad[0].key, "b.png");
}

TEST_F(FormatsTest, ReportsRowsThatCannotBeUsed) {
  add_pictures({"a.png"});
  tree_.add(
      "metadata.jsonl",
      "{\"file_name\": \"a.png\", \"text\": \"a\"}\n{\"file_name\": \"gone.png\", \"text\": \"b\"}\n{\"x\n"
      "{\"text\": \"c\"}\n{\"file_name\": \"../a.png\"}\n{\"file_name\": \"/a.png\"}\n");
  const auto report = build();
  EXPECT_EQ(index_.num_samples(), 1);
  ASSERT_EQ(report.bad.size(), 5U);
  EXPECT_THAT(report.bad[0].reason, HasSubstr("gone.png: is missing"));
  EXPECT_THAT(report.bad[1].reason, HasSubstr("is not JSON"));
  EXPECT_THAT(report.bad[2].reason, HasSubstr("names 0 pictures"));
  EXPECT_THAT(report.bad[3].reason, HasSubstr("climbs out"));
  EXPECT_THAT(report.bad[4].reason, HasSubstr("inside the folder"));
}

TEST_F(FormatsTest, ReadsCsvWithPicturesElsewhere) {
  add_pictures({"pictures/a.png", "pictures/b.png"});
  tree_.add("lists/set.csv", "id,path,caption\n1,a.png,\"a, \"\"one\"\"\"\n2,b.png,\n3,a.png\n");
  options_.images = tree_.source() / "pictures";
  const auto report = build("lists/set.csv");
  EXPECT_THAT(keys(), ElementsAre("lists/set.csv:2", "lists/set.csv:3"));
  EXPECT_THAT(captions(0), ElementsAre("a, \"one\""));
  EXPECT_EQ(index_.sample(1).flags, index::kHasImage | index::kNoCaption);
  EXPECT_THAT(report.bad.front().reason, HasSubstr("has 2 fields, expected 3"));
}

TEST_F(FormatsTest, ReadsTsvByNamedColumns) {
  add_pictures({"a.png"});
  tree_.add("set.tsv", "where\ttitle\na.png\tone\n");
  options_.image_key = "where";
  options_.caption_key = "title";
  build("set.tsv");
  EXPECT_THAT(captions(0), ElementsAre("one"));
}

TEST_F(FormatsTest, NamesColumnsThatItDoesNotFind) {
  tree_.add("set.csv", "where,title\na.png,one\n");
  EXPECT_THAT(refusal("set.csv"), HasSubstr("names the columns where, title"));
}

TEST_F(FormatsTest, ReadsAListOfPathsAndPrompts) {
  add_pictures({"a.png"});
  tree_.add("set.json", "[{\"path\": \"a.png\", \"prompt\": \"one\", \"ratio\": 1.5}]");
  EXPECT_EQ(build("set.json").manifest.layout, "table");
  EXPECT_THAT(captions(0), ElementsAre("one"));
}

TEST_F(FormatsTest, TakesLinesOfSourceCodeForDocuments) {
  tree_.add("code.jsonl", "{\"path\": \"a.py\", \"text\": \"x = 1\"}\n");
  EXPECT_EQ(build("code.jsonl").manifest.layout, "jsonl");
}

// Kohya's folders

TEST_F(FormatsTest, RepeatsPicturesAsKohyaDoes) {
  add_pictures({"3_cat/a.png", "1_dog/b.png"});
  tree_.add("3_cat/a.caption", "a cat\n");
  tree_.add("1_dog/b.txt", "a dog");
  EXPECT_EQ(build().manifest.layout, "kohya");
  EXPECT_THAT(keys(), ElementsAre("1_dog/b", "3_cat/a", "3_cat/a#2", "3_cat/a#3"));
  EXPECT_THAT(captions(3), ElementsAre("a cat"));
}

TEST_F(FormatsTest, ReportsPicturesOutsideOfKohyaFolders) {
  add_pictures({"3_cat/a.png", "cat/b.png", "02_cat/c.png", "2_cat/deep/d.png"});
  options_.layout = "kohya";
  const auto report = build();
  EXPECT_EQ(index_.num_samples(), 3);
  EXPECT_EQ(report.bad.size(), 6U);  // and no caption, three times
}

TEST_F(FormatsTest, TakesOtherFoldersForPlainOnes) {
  add_pictures({"3_cat/a.png", "cat/b.png"});
  EXPECT_EQ(build().manifest.layout, "image_text");
}

TEST_F(FormatsTest, PrefersTxtToCaption) {
  add_pictures({"a.png"});
  tree_.add("a.caption", "no");
  tree_.add("a.txt", "yes");
  build();
  EXPECT_THAT(captions(0), ElementsAre("yes"));
}

// Conversations

std::string record(const std::string& fields, const std::string& marks = "") {
  return "{" + fields + "\"conversations\": [{\"from\": \"human\", \"value\": \"" + marks +
         "What?\"}, {\"from\": \"gpt\", \"value\": \"This.\"}]}";
}

class ConversationsTest : public FormatsTest {
 protected:
  ConversationsTest() { add_pictures({"images/a.png", "images/b.png"}); }

  void add_list(const std::vector<std::string>& records) const {
    std::string text = "[";
    for (const auto& one : records) text += (text.size() > 1 ? ",\n " : "") + one;
    tree_.add("train.json", text + "]\n");
  }
  IndexReport build_list() {
    options_.images = tree_.source() / "images";
    return build("train.json");
  }
};

TEST_F(ConversationsTest, KeepsTheBytesOfARecord) {
  const std::string second = record("\"id\": \"x\\u00e9\", \"image\": \"b.png\", ", "<image>\\n");
  add_list({record(""), second});
  EXPECT_EQ(build_list().manifest.layout, "conversations");
  const auto held = index_.shard_of(1);
  const index::Shard& shard = *held;
  const index::Part& part = shard.parts[index_.sample(1).first_part + 1];
  EXPECT_EQ(part.media, index::MediaType::kConversation);
  EXPECT_EQ(stored_bytes(shard, part), second);
  EXPECT_EQ(text::conversation_of_record(stored_bytes(shard, part)).turns[0].text, "<image>\nWhat?");
}

TEST_F(ConversationsTest, NamesSamplesByTheirPlace) {
  add_list({record("\"id\": \"x\", "), record("\"id\": \"x\", ")});
  build_list();
  EXPECT_THAT(keys(), ElementsAre("train.json:1", "train.json:2"));
}

TEST_F(ConversationsTest, KeepsSeveralPicturesInOrder) {
  add_list({record("\"image\": [\"b.png\", \"a.png\", \"b.png\"], ", "<image><image><image>")});
  build_list();
  const auto held = index_.shard_of(0);
  const index::Shard& shard = *held;
  ASSERT_EQ(index_.sample(0).num_parts, 4);
  EXPECT_EQ(shard.files[shard.parts[0].file].path, "images/b.png");
  EXPECT_EQ(shard.files[shard.parts[1].file].path, "images/a.png");
  EXPECT_EQ(shard.parts[2].file, shard.parts[0].file);
}

TEST_F(ConversationsTest, LeavesOutRecordsWithReasons) {
  add_list({record(""), "{}", "3", record("\"image\": \"gone.png\", "),
            record("\"image\": \"a.png\", ", "<image><image>")});
  const auto report = build_list();
  EXPECT_EQ(index_.num_samples(), 1);
  std::string reasons;
  for (const auto& bad : report.bad) reasons += bad.key + " " + bad.reason + "\n";
  EXPECT_THAT(reasons, HasSubstr("train.json:2 expected a list `conversations`"));
  EXPECT_THAT(reasons, HasSubstr("train.json:3 expected an object"));
  EXPECT_THAT(reasons, HasSubstr("train.json:4 image: gone.png: is missing"));
  EXPECT_THAT(reasons, HasSubstr("train.json:5 has 2 marks <image> and 1 pictures"));
}

TEST_F(ConversationsTest, FlagsPicturesThatCannotBeUsed) {
  tree_.add("images/bad.png", "no picture");
  add_list({record("\"image\": \"bad.png\", ")});
  build_list();
  EXPECT_EQ(index_.sample(0).flags, index::kHasImage | index::kBadImage);
}

TEST_F(ConversationsTest, CutsShardsAndTakesThemOver) {
  add_list({record("\"image\": \"a.png\", "), record(""), record("\"image\": \"b.png\", "), record("")});
  options_.shard_bytes = 1;
  EXPECT_EQ(build_list().manifest.shards.size(), 4U);
  EXPECT_EQ(build_list().shards_reused, 4);
  options_.shard_bytes = 1 << 20;
  EXPECT_EQ(build_list().shards_reused, 0);
}

TEST_F(ConversationsTest, IsTheSameInShardsOfAnySize) {
  add_list(
      {record("\"image\": \"a.png\", "), record(""), "{}", record("\"image\": \"b.png\", "), record("")});
  build_list();
  const auto whole = keys();
  options_.shard_bytes = 1;
  build_list();
  EXPECT_EQ(keys(), whole);
}

TEST_F(ConversationsTest, VerifiesEveryByte) {
  add_list({record("\"image\": \"a.png\", "), record("")});
  build_list();
  EXPECT_TRUE(verify(index_, 1, {}).problems.empty());
  add_list({record("\"image\": \"a.png\", "), record("", "x")});
  EXPECT_FALSE(verify(index_, 1, {}).problems.empty());
}

TEST_F(ConversationsTest, CountsConversationsAndPictures) {
  add_list({record("\"image\": [\"a.png\", \"b.png\"], "), record("")});
  build_list();
  const Stats stats = compute_stats(index_);
  EXPECT_EQ(stats.num_conversations, 2);
  EXPECT_EQ(stats.num_documents, 0);
  EXPECT_EQ(stats.samples_by_pictures, (std::map<int64_t, int64_t>{{0, 1}, {2, 1}}));
  EXPECT_THAT(to_table(stats), HasSubstr("2 conversations"));
}

TEST_F(ConversationsTest, CannotBeCountedAsCaptions) {
  add_list({record("")});
  build_list();
  EXPECT_THROW(static_cast<void>(build_token_columns(index_, 100, {})), InvalidInput);
}

TEST_F(ConversationsTest, ReadsLines) {
  tree_.add("images/train.jsonl", record("\"image\": \"a.png\", ") + "\n{broken\n" + record("") + "\n");
  EXPECT_EQ(build("images/train.jsonl").manifest.layout, "conversations");
  EXPECT_THAT(keys(), ElementsAre("train.jsonl:1", "train.jsonl:3"));
}

TEST_F(ConversationsTest, RefusesEveryCutOfAList) {
  const std::string text = "[" + record("\"image\": \"a.png\", ", "<image>") + "]";
  options_.images = tree_.source() / "images";
  options_.layout = "conversations";
  Rng rng(11);
  for (int i = 0; i < 40; ++i) {
    tree_.add("train.json", text.substr(0, rng.below(text.size())));
    EXPECT_THAT(refusal("train.json"), HasSubstr("train.json")) << i;
  }
}

}  // namespace
}  // namespace chiliad::dataset
