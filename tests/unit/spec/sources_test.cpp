#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chiliad/base/error.h"
#include "chiliad/spec/run_file.h"

namespace chiliad::spec {
namespace {

using ::testing::HasSubstr;

RunFile parse(const std::string& sources, const std::vector<std::string>& overrides = {}) {
  return parse_run_file("version: 1\ndata:\n  sources:\n" + sources, "run.yaml", "run", overrides);
}

std::string error_of(const std::string& sources, const std::vector<std::string>& overrides = {}) {
  try {
    (void)parse(sources, overrides);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(SourcesTest, ATreeIsRead) {
  const auto sources =
      parse(
          "    - {name: birds, index: birds.index, weight: 3, epochs: 2, languages: [de, zh]}\n"
          "    - name: drawn\n"
          "      weight: [[0, 1], [100, 0.5]]\n"
          "      ramp: true\n"
          "      sources:\n"
          "        - {name: ink, index: ink.index}\n")
          .data.sources;
  ASSERT_EQ(sources.size(), 2U);
  DataSource birds;
  birds.name = "birds";
  birds.index = "birds.index";
  birds.weight = {{0, 3.0}};
  birds.epochs = 2;
  birds.languages = {"de", "zh"};
  EXPECT_EQ(sources[0], birds);
  EXPECT_EQ(sources[1].weight, (std::vector<WeightPoint>{{0, 1.0}, {100, 0.5}}));
  EXPECT_TRUE(sources[1].ramp);
  EXPECT_EQ(sources[1].sources.at(0).index, "ink.index");
}

TEST(SourcesTest, OneLineOfTheCommandWillDo) {
  const RunFile file =
      parse_run_file("version: 1\n", "run.yaml", "run",
                     {"data.sources=[{name: a, index: a.index}, {name: b, index: b.index}]"});
  EXPECT_EQ(file.data.sources.size(), 2U);
}

struct Refused {
  const char* sources;
  const char* says;
};

TEST(SourcesTest, WhatDoesNotFitIsNamedWithItsPlace) {
  for (const auto& [sources, says] : {
           Refused{"    - {name: a, index: x, wieght: 2}\n",
                   "run.yaml:4:27: data.sources: unknown key \"wieght\". Did you mean weight?"},
           Refused{"    - {index: x}\n",
                   "data.sources: expected a source with a name, got a map. Add `name: ...`"},
           Refused{"    - {name: a}\n",
                   "data.sources: a: expected either an index (a source) or sources (a group)"},
           Refused{"    - {name: a, index: x, sources: [{name: b, index: y}]}\n", "expected either an index"},
           Refused{"    - {name: a, index: x}\n    - {name: a, index: y}\n",
                   "a: expected each name once, got it twice"},
           Refused{"    - {name: a, index: x, weight: -1}\n",
                   "expected a weight in [0, 1e9], or a list of [step, weight]"},
           Refused{"    - {name: a, index: x, weight: [[5, 1]]}\n",
                   "expected steps that rise from 0, got \"5\""},
           Refused{"    - {name: a, index: x, weight: [[0, 1], [7, 2], [7, 3]]}\n",
                   "expected steps that rise from 0"},
           Refused{"    - {name: a, index: x, weight: [[0]]}\n",
                   "expected a pair [step, weight], got a list"},
           Refused{"    - {name: a, index: x, ramp: yes}\n", "expected true or false, got \"yes\""},
           Refused{"    - {name: a, index: x, epochs: 1.5}\n", "expected a whole number of epochs"},
           Refused{"    - {name: g, epochs: 2, sources: [{name: a, index: x}]}\n",
                   "g: expected epochs, languages and a profile of sources alone"},
           Refused{"    - birds.index\n", "expected a source such as {name: photos"},
           Refused{"    {name: a, index: x}\n", "data.sources: expected a list of sources"},
       })
    EXPECT_THAT(error_of(sources), HasSubstr(says)) << sources;
}

TEST(SourcesTest, OptionsThatDoNotGoTogetherAreNamed) {
  const std::string one = "    - {name: a, index: x, weight: 2}\n";
  EXPECT_THAT(error_of(one, {"data.index=y"}),
              HasSubstr("data.sources: expected nothing beside data.index (y)"));
  EXPECT_THAT(error_of(one, {"data.mixing=size"}),
              HasSubstr("a: expected no weight where data.mixing is size"));
  EXPECT_THAT(error_of("    - {name: a, index: x, epochs: 2}\n", {"data.mixing=concatenate"}),
              HasSubstr("a: expected no epochs and languages where data.mixing is concatenate"));
  EXPECT_THAT(error_of("    []\n"),
              HasSubstr("data.index: expected a folder made by `chiliad data index`, or data.sources"));
  try {
    (void)parse_run_file("version: 1\n", "run.yaml", "run", {"data.index=a", "data.mixing=size"});
    FAIL();
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("data.mixing: belongs to data.sources"));
  }
}

}  // namespace
}  // namespace chiliad::spec
