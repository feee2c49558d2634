#include "chiliad/weights/key_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chiliad/base/error.h"

namespace chiliad::weights {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Kind = KeyRule::Kind;

KeyTable table_of(std::vector<KeyRule> rules) {
  return KeyTable(std::move(rules));
}

KeyTable small_table() {
  return KeyTable({{R"(^bert\.)", ""},
                   {R"(^layer\.(\d+)\.old\.)", "layer.$1.new."},
                   {R"(^copy$)", "table", Kind::kAlias},
                   {R"(position_ids$)", "", Kind::kIgnore}});
}

std::vector<NamedShape> wanted() {
  return {{"layer.3.new.weight", Shape{2, 3}}, {"table", Shape{4}}};
}

KeyMatch match(const std::vector<NamedShape>& found) {
  return match_keys(small_table(), wanted(), found);
}

TEST(KeyTableTest, EmptyTableKeepsKeys) {
  EXPECT_EQ(KeyTable().ours("a.b"), "a.b");
}

TEST(KeyTableTest, RulesApplyInOrder) {
  EXPECT_EQ(small_table().ours("bert.layer.12.old.weight"), "layer.12.new.weight");
}

TEST(KeyTableTest, PatternsReplaceTheFirstMatchAlone) {
  EXPECT_EQ(table_of({{"a", "b"}}).ours("aa"), "ba");
}

TEST(KeyTableTest, IgnoredKeysHaveNoName) {
  EXPECT_EQ(small_table().ours("bert.embeddings.position_ids"), std::nullopt);
}

TEST(KeyTableTest, BadExpressionIsOurBug) {
  EXPECT_THROW((void)table_of({{"(", ""}}), InternalError);
}

TEST(KeyTableTest, HugeKeysAreLeftAlone) {
  const std::string huge(100'000, 'a');
  EXPECT_EQ(table_of({{"^(a|b)*$", ""}}).ours(huge), huge);
}

KeyTable split_table() {
  return KeyTable({{R"(^kv\.)", "", Kind::kSplit, {"k.", "v."}}, {R"(^(k|v)\.)", "attn.$1."}});
}

TEST(KeyTableTest, SplitKeysHaveSeveralNames) {
  const auto keys = split_table().translate_all("kv.weight");
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(keys[0].name, "attn.k.weight");
  EXPECT_EQ(keys[1].name, "attn.v.weight");
  EXPECT_EQ(keys[1].part, 1);
  EXPECT_EQ(keys[1].num_parts, 2);
}

TEST(KeyMatchTest, SplitTensorsGiveTheirParts) {
  const std::vector<NamedShape> ours{{"attn.k.weight", Shape{2, 3}}, {"attn.v.weight", Shape{2, 3}}};
  const auto result = match_keys(split_table(), ours, std::vector<NamedShape>{{"kv.weight", Shape{4, 3}}});
  EXPECT_TRUE(result.complete()) << result.report();
  EXPECT_EQ(result.key_of.at("attn.v.weight"), "kv.weight");
  EXPECT_EQ(result.part_of.at("attn.v.weight").index, 1);
}

TEST(KeyMatchTest, SplitTensorsOfAnotherSizeAreReported) {
  const std::vector<NamedShape> ours{{"attn.k.weight", Shape{2, 3}}, {"attn.v.weight", Shape{2, 3}}};
  const auto result = match_keys(split_table(), ours, std::vector<NamedShape>{{"kv.weight", Shape{5, 3}}});
  EXPECT_THAT(result.report(), HasSubstr("attn.k.weight: expected [2, 3], got 2 parts of [5, 3]"));
}

TEST(KeyMatchTest, CompleteMatchNamesTheKeys) {
  const auto result = match({{"bert.layer.3.old.weight", Shape{2, 3}}, {"table", Shape{4}}});
  EXPECT_TRUE(result.complete()) << result.report();
  EXPECT_EQ(result.key_of.at("layer.3.new.weight"), "bert.layer.3.old.weight");
  EXPECT_EQ(result.report(), "");
}

TEST(KeyMatchTest, AliasStandsInForAMissingTensor) {
  EXPECT_EQ(match({{"layer.3.new.weight", Shape{2, 3}}, {"copy", Shape{4}}}).key_of.at("table"), "copy");
}

TEST(KeyMatchTest, AliasYieldsToTheTensorItself) {
  const auto result = match({{"layer.3.new.weight", Shape{2, 3}}, {"copy", Shape{4}}, {"table", Shape{4}}});
  EXPECT_TRUE(result.complete()) << result.report();
  EXPECT_EQ(result.key_of.at("table"), "table");
}

TEST(KeyMatchTest, NamesWhatIsMissing) {
  EXPECT_THAT(match({{"table", Shape{4}}}).missing, ElementsAre("layer.3.new.weight"));
}

TEST(KeyMatchTest, NamesWhatIsUnexpectedByItsKeyInTheFile) {
  EXPECT_THAT(match({{"bert.other", Shape{4}}}).unexpected, ElementsAre("bert.other"));
}

TEST(KeyMatchTest, NamesWrongShapes) {
  EXPECT_THAT(match({{"table", Shape{5}}}).wrong_shape,
              ElementsAre("table: expected [4], got [5] as 'table'"));
}

TEST(KeyMatchTest, TrailingOnesDoNotCount) {
  EXPECT_TRUE(match({{"layer.3.old.weight", Shape{2, 3, 1, 1}}, {"table", Shape{4}}}).complete());
}

TEST(KeyMatchTest, LeadingOnesCount) {
  EXPECT_EQ(match({{"table", Shape{1, 4}}}).wrong_shape.size(), 1u);
}

TEST(KeyMatchTest, TwoTensorsForOneParameterAreRefused) {
  const auto result = match(
      {{"bert.layer.3.old.weight", Shape{2, 3}}, {"layer.3.new.weight", Shape{2, 3}}, {"table", Shape{4}}});
  EXPECT_THAT(result.ambiguous,
              ElementsAre("layer.3.new.weight: 'bert.layer.3.old.weight' and 'layer.3.new.weight'"));
}

TEST(KeyMatchTest, ReportNamesAFewOfEachKind) {
  std::vector<NamedShape> found;
  for (int i = 0; i < 20; ++i) found.push_back({"extra" + std::to_string(i), Shape{1}});
  EXPECT_THAT(match(found).report(),
              testing::AllOf(HasSubstr("2 missing: layer.3.new.weight, table; 20 unexpected: extra0, "),
                             HasSubstr("extra7, ..."), testing::Not(HasSubstr("extra8"))));
}

}  // namespace
}  // namespace chiliad::weights
