#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "chiliad/base/json_text.h"
#include "chiliad/spec/detail/sections.h"
#include "chiliad/spec/run_file.h"

namespace chiliad::spec {
namespace {

using testing::HasSubstr;

TEST(ReferenceTest, PageHasARowForEveryOption) {
  const std::string page = reference_page();
  for (const auto& section : detail::sections()) {
    EXPECT_THAT(page, HasSubstr("\n## " + section.name + "\n"));
    for (const auto& option : section.options) EXPECT_THAT(page, HasSubstr("\n| `" + option.name + "` | "));
  }
}

TEST(ReferenceTest, RowNamesRangeDefaultAndResume) {
  EXPECT_THAT(reference_page(),
              HasSubstr("| `lr` | a number in (0, 1] | `0.0001` | free | learning rate after the warm-up |"));
  EXPECT_THAT(reference_page(), HasSubstr("| `index` | text | required | free | folder made by"));
}

TEST(ReferenceTest, HelpIsOneLine) {
  for (const auto& section : detail::sections()) {
    for (const auto& option : section.options) {
      EXPECT_FALSE(option.help.empty() || option.help.find('\n') != std::string::npos) << option.name;
    }
  }
}

TEST(SchemaTest, KnowsEveryOptionAndNoOther) {
  const auto schema = parse_json<nlohmann::json>(json_schema());
  EXPECT_EQ(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
  EXPECT_EQ(schema["properties"].size(), detail::sections().size() + 2);  // version, extensions
  for (const auto& section : detail::sections()) {
    const auto& part = schema["properties"][section.name];
    EXPECT_EQ(part["additionalProperties"], false);
    EXPECT_EQ(part["properties"].size(), section.options.size());
  }
}

TEST(SchemaTest, RequiresVersionAndIndex) {
  const auto schema = parse_json<nlohmann::json>(json_schema());
  EXPECT_EQ(schema["required"], nlohmann::json::array({"version", "data"}));
  EXPECT_EQ(schema["properties"]["data"]["oneOf"],
            parse_json<nlohmann::json>(R"([{"required": ["index"]}, {"required": ["sources"]}])"));
}

TEST(SchemaTest, CarriesRangesChoicesAndDefaults) {
  const auto schema = parse_json<nlohmann::json>(json_schema());
  const auto& lr = schema["properties"]["optimizer"]["properties"]["lr"];
  EXPECT_EQ(lr["exclusiveMinimum"], 0.0);
  EXPECT_EQ(lr["maximum"], 1.0);
  EXPECT_EQ(lr["default"], 1e-4);
  EXPECT_EQ(schema["properties"]["data"]["properties"]["crop"]["enum"],
            nlohmann::json::array({"center", "random"}));
}

}  // namespace
}  // namespace chiliad::spec
