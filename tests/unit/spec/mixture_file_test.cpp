// Mixtures of LLaVA-NeXT.
#include "chiliad/spec/mixture_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chiliad/base/error.h"

namespace chiliad::spec {
namespace {

using ::testing::HasSubstr;
using Kind = Sampling::Kind;

std::string refusal(const std::string& text) {
  try {
    static_cast<void>(parse_mixture(text, "mix.yaml"));
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return {};
}

TEST(MixtureFileTest, ReadsWhatLlavaNextReads) {
  const auto entries = parse_mixture(
      "datasets:\n"
      "  - json_path: /data/a.json\n"
      "    sampling_strategy: first:10%\n"
      "  - json_path: b.jsonl  # all of it\n"
      "  - {json_path: c.json, sampling_strategy: \"random:1000\"}\n"
      "  - json_path: d.json\n"
      "    sampling_strategy: end:7\n",
      "mix.yaml");
  ASSERT_EQ(entries.size(), 4U);
  EXPECT_EQ(entries[0].path, "/data/a.json");
  EXPECT_EQ(entries[0].sampling.kind, Kind::kFirst);
  EXPECT_TRUE(entries[0].sampling.percent);
  EXPECT_EQ(entries[1].sampling.kind, Kind::kAll);
  EXPECT_EQ(entries[2].sampling.number, 1000);
  EXPECT_EQ(entries[2].sampling.kind, Kind::kRandom);
  EXPECT_EQ(entries[3].sampling.kind, Kind::kEnd);
  EXPECT_EQ(entries[3].place, "mix.yaml:6:5");
}

TEST(MixtureFileTest, ReadsAListAsJson) {
  const auto entries = parse_mixture(R"([{"json_path": "a.json", "sampling_strategy": "all"}])", "mix.json");
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].path, "a.json");
}

TEST(MixtureFileTest, BracesNameSeveralFiles) {
  const auto entries =
      parse_mixture("- {json_path: \"x/{a,b}.json\", sampling_strategy: \"first:2\"}", "mix.yaml");
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].path, "x/a.json");
  EXPECT_EQ(entries[1].path, "x/b.json");
  EXPECT_EQ(entries[1].sampling.number, 2);
}

TEST(MixtureFileTest, PercentagesAreRoundedUp) {
  const Sampling tenth{Kind::kFirst, 10, true};
  EXPECT_EQ(tenth.count(101), 11);
  EXPECT_EQ(tenth.count(1), 1);
  EXPECT_EQ(tenth.count(0), 0);
  EXPECT_EQ((Sampling{Kind::kEnd, 5, false}.count(3)), 3);
  EXPECT_EQ((Sampling{}.count(3)), 3);
}

TEST(MixtureFileTest, RefusesWithThePlace) {
  EXPECT_THAT(refusal("datasets:\n  - json_path: a.json\n    sampling_strategy: half\n"),
              HasSubstr("mix.yaml:3:24: sampling_strategy: expected all, first:N, end:N or random:N"));
  for (const char* wrong : {"first", "first:", "first:0", "first:101%", "first:1.5", "random:-3", "all:3"})
    EXPECT_THAT(refusal(std::string("- {json_path: a.json, sampling_strategy: \"") + wrong + "\"}"),
                HasSubstr(std::string("got '") + wrong + "'"));
  EXPECT_THAT(refusal("- {json_paht: a.json}"), HasSubstr("json_paht: unknown key. Did you mean json_path?"));
  EXPECT_THAT(refusal("- {sampling_strategy: all}"), HasSubstr("json_path: is missing"));
  EXPECT_THAT(refusal("data: []"), HasSubstr("expected a list `datasets`"));
  EXPECT_THAT(refusal("datasets: []"), HasSubstr("expected one file at least"));
}

}  // namespace
}  // namespace chiliad::spec
