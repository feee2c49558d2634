#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <nlohmann/json.hpp>
#include <set>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/dataset/build_index.h"
#include "chiliad/io/file.h"
#include "chiliad/text/conversation.h"
#include "tests/support/kits.h"
#include "tests/support/temp_dir.h"

// Every file of conversations of the kit of hard files against the outcome that its index.json states.
namespace chiliad::dataset {
namespace {

using Json = nlohmann::ordered_json;

struct Case {
  std::string file;
  std::string images;
  bool refused = false;
  std::vector<std::string> records;  ///< outcome of each
};

std::vector<Case> cases(bool refused) {
  std::vector<Case> found;
  const Json kit = parse_json<Json>(test::hard_files_index());
  for (const auto& [file, entry] : kit.at("files").items()) {
    if (entry.at("kind") != "llava-json" || (entry.at("expect") == "refuse") != refused) continue;
    found.push_back(
        {file, entry.at("image_root"), refused, entry.at("records").get<std::vector<std::string>>()});
  }
  return found;
}

class HardConversationsTest : public ::testing::TestWithParam<Case> {
 protected:
  IndexReport build() const {
    IndexOptions options;
    options.images = test::hard_files_kit() / GetParam().images;
    options.layout = "conversations";
    return build_index(test::hard_files_kit() / GetParam().file, folder_.path() / "index", options, {});
  }

  test::TempDir folder_;
};
class RefusedConversationsTest : public HardConversationsTest {};

TEST_P(RefusedConversationsTest, IsNamedInTheError) {
  try {
    (void)build();
    FAIL() << "no refusal";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr(GetParam().file));
  }
}

TEST_P(HardConversationsTest, ComeOutAsTheKitStates) {
  const IndexReport report = build();
  const auto index = index::Index::open(folder_.path() / "index");
  std::set<std::string> good;
  for (int64_t i = 0; i < index.num_samples(); ++i) good.insert(index.key(i));
  std::set<std::string> bad;
  for (const BadSample& sample : report.bad) bad.insert(sample.key);
  for (size_t i = 0; i < GetParam().records.size(); ++i) {
    const std::string key = GetParam().file + ":" + std::to_string(i + 1);
    const std::string name = std::filesystem::path(key).filename().string();
    const bool is_good = good.contains(key) || good.contains("llava/" + name) || good.contains(name);
    const bool is_bad = bad.contains(key) || bad.contains("llava/" + name) || bad.contains(name);
    EXPECT_EQ(is_good, GetParam().records[i] == "ok") << key;
    EXPECT_EQ(is_bad, GetParam().records[i] == "skip") << key;
  }
}

TEST_P(HardConversationsTest, ReadBackAsConversations) {
  (void)build();
  const auto index = index::Index::open(folder_.path() / "index");
  for (const index::Shard& shard : index.shards()) {
    for (const index::Caption& caption : shard.captions) {
      const index::Part& part = shard.parts[caption.part];
      const std::string bytes =
          io::read_text(index.part_path(shard, part), 1 << 20).substr(part.offset, part.length);
      EXPECT_EQ(hash64(bytes), part.checksum);
      EXPECT_EQ(text::conversation_of_record(bytes).refusal, "");
    }
  }
}

/// "llava/bad_line.jsonl" -> "BadLineJsonl".
std::string test_name(const ::testing::TestParamInfo<Case>& one) {
  std::string name;
  bool upper = true;
  for (const char c : std::filesystem::path(one.param.file).filename().string()) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      name.push_back(upper ? static_cast<char>(std::toupper(c)) : c);
    upper = std::isalnum(static_cast<unsigned char>(c)) == 0;
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Kit, HardConversationsTest, ::testing::ValuesIn(cases(false)), test_name);
INSTANTIATE_TEST_SUITE_P(Kit, RefusedConversationsTest, ::testing::ValuesIn(cases(true)), test_name);

}  // namespace
}  // namespace chiliad::dataset
