#include "chiliad/spec/run_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/base/rng.h"
#include "tests/support/temp_dir.h"

namespace chiliad::spec {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

RunFile parse(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return parse_run_file(text, "run.yaml", "run", overrides);
}

// A sound file with `body` behind its four lines.
std::string with(const std::string& body) {
  return "version: 1\ndata:\n  index: birds\n" + body;
}

std::string error_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    (void)parse(text, overrides);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "no error";
}

TEST(RunFileTest, LeastFileGetsDefaults) {
  const RunFile file = parse(with(""));
  EXPECT_EQ(file.data.index, "birds");
  EXPECT_EQ(file.data.batch, DataOptions{}.batch);
  EXPECT_EQ(file.run.name, "run");
  EXPECT_EQ(file.run.dir, "runs/run");
}

TEST(RunFileTest, ReadsEveryKindOfValue) {
  const RunFile file =
      parse(with("  languages: [en, no]\n  flip: true\n  cache_bytes: 64MiB\n  background: \"#ff8000\"\n"
                 "run: {seed: 7, name: \"a b\"}\noptimizer:\n  lr: 1e-4\n  decay: cosine\nprecision:\n  "
                 "compute: fp32\n"));
  EXPECT_EQ(file.data.languages, (std::vector<std::string>{"en", "no"}));
  EXPECT_TRUE(file.data.flip);
  EXPECT_EQ(file.data.cache_bytes, 64 << 20);
  EXPECT_EQ(file.data.background, "#ff8000");
  EXPECT_EQ(file.run.seed, 7u);
  EXPECT_EQ(file.run.name, "a b");
  EXPECT_DOUBLE_EQ(file.optimizer.lr, 1e-4);
  EXPECT_EQ(file.optimizer.decay, "cosine");
}

TEST(RunFileTest, ReadsFromDiskAndNamesThePath) {
  const test::TempDir dir;
  const auto path = dir.path() / "cats.yaml";
  std::ofstream(path) << with("");
  EXPECT_EQ(read_run_file(path, {}).run.dir, "runs/cats");
  EXPECT_THROW((void)read_run_file(dir.path() / "none.yaml", {}), InvalidInput);
  EXPECT_THROW((void)read_run_file(dir.path(), {}), InvalidInput);
}

TEST(RunFileTest, NumberWithUnitGetsASuggestion) {
  EXPECT_EQ(error_of(with("optimizer:\n  lr: \"3e-4s\"\n")),
            "run.yaml:5:7: optimizer.lr: expected a number in (0, 1], got \"3e-4s\". Did you mean 3e-4?");
}

TEST(RunFileTest, UnknownKeyNamesTheNearest) {
  EXPECT_EQ(error_of(with("optimizer:\n  warmup_step: 3\n")),
            "run.yaml:5:3: unknown key \"warmup_step\" in section optimizer. Did you mean warmup_steps?");
}

TEST(RunFileTest, UnknownSectionNamesTheNearest) {
  EXPECT_THAT(error_of(with("optimiser:\n  lr: 1e-4\n")), HasSubstr("Did you mean optimizer?"));
}

TEST(RunFileTest, KeyOfAnotherSectionIsSentThere) {
  EXPECT_THAT(error_of(with("model:\n  lr: 1e-4\n")), HasSubstr("Did you mean optimizer.lr?"));
}

TEST(RunFileTest, KeyWithoutItsSectionIsSentThere) {
  EXPECT_THAT(error_of(with("steps: 5\n")), HasSubstr("unknown section \"steps\". Did you mean run.steps?"));
  EXPECT_THAT(error_of(with("learning_rate: 5\n")), HasSubstr("Did you mean optimizer.lr?"));
}

TEST(RunFileTest, RenamedKeyAnswersWithTheNewName) {
  EXPECT_THAT(error_of(with("optimizer:\n  learning_rate: 1e-4\n")), HasSubstr("It is called optimizer.lr."));
}

TEST(RunFileTest, ALibraryThatIsMissingIsNamedWithItsPlace) {
  EXPECT_THAT(error_of(with("extensions: [libgone.so]\n")), HasSubstr("extensions: expected a library, got"));
}

TEST(RunFileTest, ExtensionsAreAList) {
  EXPECT_THAT(error_of(with("extensions: libgone.so\n")), HasSubstr("expected a list of libraries"));
}

TEST(RunFileTest, AMisspeltListOfExtensionsNamesIt) {
  EXPECT_THAT(error_of(with("extension: [libmine.so]\n")), HasSubstr("Did you mean extensions?"));
}

TEST(RunFileTest, VersionIsRequired) {
  EXPECT_THAT(error_of("data:\n  index: a\n"), HasSubstr("Add the line \"version: 1\""));
}

TEST(RunFileTest, OtherVersionIsRefused) {
  EXPECT_THAT(error_of("version: 2\n"), StartsWith("run.yaml:1:10: version: expected 1, got \"2\""));
}

TEST(RunFileTest, MissingIndexIsSaid) {
  EXPECT_THAT(error_of("version: 1\n"), StartsWith("run.yaml: data.index: expected folder made by"));
}

TEST(RunFileTest, EmptyFileSaysWhatIsMissing) {
  EXPECT_THAT(error_of(""), HasSubstr("the file is empty: expected version: 1 and data.index"));
  EXPECT_THAT(error_of("# nothing\n"), HasSubstr("the file is empty"));
}

TEST(RunFileTest, SectionOfCommentsIsFine) {
  EXPECT_EQ(parse(with("run:\n  # seed: 3\n")).run.seed, 1u);
}

struct Refused {
  const char* name;
  const char* body;
  const char* message;
};
void PrintTo(const Refused& refused, std::ostream* out) {
  *out << refused.name;
}

class RefusedValueTest : public testing::TestWithParam<Refused> {};

TEST_P(RefusedValueTest, NamesPlaceAndCause) {
  const std::string error = error_of(with(GetParam().body));
  EXPECT_THAT(error, StartsWith("run.yaml:"));
  EXPECT_THAT(error, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Values, RefusedValueTest,
    testing::Values(
        Refused{"octal", "run:\n  seed: 0123\n", "got \"0123\". Did you mean 123?"},
        Refused{"sexagesimal", "run:\n  seed: 12:30\n", "run.seed: expected a whole number"},
        Refused{"hexadecimal", "run:\n  seed: 0x10\n", "run.seed: expected a whole number"},
        Refused{"separator", "run:\n  steps: 1_000\n", "Did you mean 1000?"},
        Refused{"fraction", "run:\n  steps: 1.5\n",
                "expected a whole number in [1, 1000000000], got \"1.5\""},
        Refused{"exponent", "run:\n  steps: 1e3\n", "Did you mean 1000?"},
        Refused{"overflow", "run:\n  steps: 99999999999999999999999\n", "run.steps: expected a whole number"},
        Refused{"sectiontwice", "data:\n", "key \"data\" stands twice"},
        Refused{"below", "  batch: -8\n", "data.batch: expected a whole number in [1, 10000000], got \"-8\""},
        Refused{"nan", "optimizer:\n  lr: .nan\n", "optimizer.lr: expected a number in (0, 1], got \".nan\""},
        Refused{"infinite", "optimizer:\n  lr: .inf\n", "expected a number in (0, 1]"},
        Refused{"plainnan", "optimizer:\n  clip: nan\n", "expected a number in [0, 1"},
        Refused{"tiny", "optimizer:\n  eps: 1e-400\n", "expected a number in (0, 1]"},
        Refused{"openend", "optimizer:\n  lr: 0\n", "expected a number in (0, 1], got \"0\""},
        Refused{"quotednumber", "run:\n  steps: \"5\"\n", "Remove the quotes"},
        Refused{"yes", "  flip: yes\n", "expected true or false, got \"yes\". Did you mean true?"},
        Refused{"capital", "  flip: True\n", "Did you mean true?"},
        Refused{"off", "  flip: off\n", "Did you mean false?"},
        Refused{"nothing", "  order:\n  batch: 3\n", "run.yaml:4:"},
        Refused{"tilde", "run:\n  name: ~\n", "run.name: expected text, got nothing"},
        Refused{"choice", "  order: windov\n",
                "one of window, full, sequential, got \"windov\". Did you mean window?"},
        Refused{"decay", "optimizer:\n  decay: cosin\n", "Did you mean cosine?"},
        Refused{"map", "  batch: {a: 1}\n", "got a map"},
        Refused{"nolist", "  languages: en\n", "Did you mean [en]?"},
        Refused{"emptylist", "  languages: []\n", "expected at least one language for family pixel_dit"},
        Refused{"twice", "  languages: [en, en]\n", "got \"en\" twice"},
        Refused{"bytes", "  cache_bytes: 64M\n", "Did you mean 64MiB?"},
        Refused{"manybytes", "  cache_bytes: 64000000TiB\n", "expected bytes (such as 64MiB)"},
        Refused{"colour", "  background: red\n", "white, black or \"#rrggbb\""},
        Refused{"duplicate", "  batch: 8\n  batch: 16\n",
                "run.yaml:5:3: key \"batch\" stands twice, first at run.yaml:4:3"},
        Refused{"escapedduplicate", "  batch: 8\n  \"batch\": 16\n", "stands twice"},
        Refused{"tag", "run:\n  name: !!str a\n", "Tags are not supported"},
        Refused{"maptag", "run: !!map\n  name: a\n", "Tags are not supported"},
        Refused{"anchor", "run: &a\n  name: a\n", "Anchors are not supported"},
        Refused{"alias", "run: *a\n", "run.yaml:4:"},
        Refused{"documents", "---\nversion: 1\n", "expected one document"},
        Refused{"tab", "run:\n\tname: a\n", "run.yaml:5:1: expected spaces, got a tab"},
        Refused{"latin", "run:\n  name: caf\xe9\n",
                "run.yaml:5:12: expected UTF-8, got the byte 0xe9 at byte offset 48"},
        Refused{"control", "run:\n  name: a\x01\n", "control character 0x01"},
        Refused{"directive", "%YAML 1.1\n", "YAML directive"},
        Refused{"syntax", "run: [1, 2\n", "expected YAML"},
        Refused{"deep", "run: [[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]\n", "expected at most 16 levels"},
        Refused{"listkey", "? [a, b]\n: 1\n", "expected a key"},
        Refused{"scalarsection", "run: 5\n", "run: expected keys below it"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(RunFileTest, LargeFileIsRefused) {
  EXPECT_THAT(error_of(with(std::string(2 << 20, '#'))), HasSubstr("at most 1.0 MiB"));
}

TEST(RunFileTest, ListAsRootIsRefused) {
  EXPECT_THAT(error_of("- a\n"), HasSubstr("expected sections"));
}

TEST(RunFileTest, OverrideWinsOverTheFile) {
  const RunFile file = parse(with("run:\n  seed: 3\n"), {"run.seed=4", "data.languages=[de, fr]"});
  EXPECT_EQ(file.run.seed, 4u);
  EXPECT_EQ(file.data.languages, (std::vector<std::string>{"de", "fr"}));
}

TEST(RunFileTest, OverrideGivesARequiredKey) {
  EXPECT_EQ(parse("version: 1\n", {"data.index=a=b #c"}).data.index, "a=b #c");
}

TEST(RunFileTest, OverrideIsCheckedAndNamed) {
  EXPECT_EQ(error_of(with(""), {"optimizer.lr=3e-4s"}),
            "--set optimizer.lr: expected a number in (0, 1], got \"3e-4s\". Did you mean 3e-4?");
}

TEST(RunFileTest, OverrideOfAnUnknownKeyNamesTheNearest) {
  EXPECT_THAT(error_of(with(""), {"run.stepps=3"}), HasSubstr("Did you mean steps?"));
}

TEST(RunFileTest, OverrideThatIsNotClosedIsRefused) {
  EXPECT_EQ(error_of(with(""), {"data.languages=[en"}),
            "--set data.languages: expected a closing ], got \"[en\"");
}

TEST(RunFileTest, OverrideTwiceIsRefused) {
  EXPECT_THAT(error_of(with(""), {"run.seed=3", "run.seed=4"}), HasSubstr("set twice"));
}

TEST(RunFileTest, OverrideWithoutAKeyIsRefused) {
  EXPECT_THAT(error_of(with(""), {"seed=3"}), HasSubstr("expected section.key=value, got \"seed=3\""));
  EXPECT_THAT(error_of(with(""), {"run.seed"}), HasSubstr("expected section.key=value"));
}

TEST(RunFileTest, OverrideBreakingACrossCheckIsNamed) {
  EXPECT_THAT(error_of(with(""), {"model.width=257"}), StartsWith("--set model.width: expected a multiple"));
}

// Bytes replaced, removed or doubled at random: anything but a refusal of the user's file would be a fault of
// ours.
TEST(RunFileTest, DamagedTextIsReadOrRefused) {
  const std::string sound = to_yaml(parse(with("")));
  const std::string bytes = " \n:-[]{},#&*!|>'\"%@`?0aZ.\t\xff";
  Rng rng({20261129});
  for (int i = 0; i < 3000; ++i) {
    std::string text = sound.substr(0, 300);
    for (int edits = 0; edits < 3; ++edits) {
      const size_t at = rng.next_u32() % text.size();
      const char byte = bytes[rng.next_u32() % bytes.size()];
      if (rng.next_u32() % 2 == 0) {
        text[at] = byte;
      } else {
        text.insert(at, 1 + rng.next_u32() % 3, byte);
      }
    }
    try {
      (void)parse(text);
    } catch (const InvalidInput& error) {
      EXPECT_THAT(error.what(), StartsWith("run.yaml")) << text;
    }
  }
}

TEST(CrossCheckTest, WidthIsDivisibleByHeads) {
  EXPECT_EQ(error_of(with("model:\n  width: 250\n")),
            "run.yaml:5:10: model.width: expected a multiple of model.heads (4), got 250. Did you mean 252?");
}

TEST(CrossCheckTest, AutoNeedsABudget) {
  EXPECT_THAT(error_of(with("parallel: {recompute: auto}\n")),
              HasSubstr("parallel.memory_budget: expected the bytes of a rank for recompute auto, got 0"));
}

TEST(CrossCheckTest, ABudgetBelongsToAuto) {
  EXPECT_THAT(error_of(with("parallel: {memory_budget: 12GiB}\n")),
              HasSubstr("belongs to recompute auto: expected 0 for recompute none, got 12884901888"));
}

TEST(CrossCheckTest, HeadSizeIsEven) {
  EXPECT_THAT(error_of(with("model:\n  width: 12\n")), HasSubstr("expected an even head size"));
}

TEST(CrossCheckTest, PicturesNeedAWidthOfFours) {
  EXPECT_THAT(
      error_of(with("model:\n  width: 38\n  heads: 1\n")),
      HasSubstr("model.width: expected a multiple of 4 for family pixel_dit, got 38. Did you mean 40?"));
}

TEST(CrossCheckTest, ACaptionHoldsAnyCharacter) {
  EXPECT_THAT(error_of(with("model:\n  text_max_tokens: 3\n")),
              HasSubstr("expected a whole number in [4, 65536]"));
}

TEST(CrossCheckTest, WhatTensorParallelRanksCannotShareIsNamed) {
  EXPECT_THAT(
      error_of(with("parallel: {nproc: 4, dp_shard: 2, pp: 2}\n")),
      HasSubstr(
          "parallel.pp: expected 1, for pipeline parallelism is not built yet, got 2. Give these ranks to "
          "parallel.dp_shard: did you mean dp_shard 4?"));
  EXPECT_THAT(error_of(with("parallel: {nproc: 2, cp: 2}\n")), HasSubstr("did you mean dp_shard 2?"));
  EXPECT_THAT(error_of(with("parallel: {nproc: 3, tp: 3}\n")),
              HasSubstr("got 3: 4 (key) heads are not a multiple of it. Did you mean 2?"));
}

TEST(CrossCheckTest, RanksThatShareItemsLeaveNoneOutAlone) {
  EXPECT_THAT(error_of(with("  on_unavailable: skip\nparallel: {nproc: 2, tp: 2}\n")),
              HasSubstr("data.on_unavailable: expected stop where parallel.tp is 2"));
}

TEST(CrossCheckTest, BucketStepIsAMultipleOfPatch) {
  EXPECT_THAT(error_of(with("  bucket_step: 4\n")),
              HasSubstr("expected a multiple of model.patch (8), got 4"));
}

TEST(CrossCheckTest, BucketSidesAreMultiplesOfStep) {
  EXPECT_THAT(error_of(with("  bucket_min: 20\n")), HasSubstr("data.bucket_min: expected a multiple of"));
  EXPECT_THAT(error_of(with("  bucket_max: 60\n")), HasSubstr("data.bucket_max: expected a multiple of"));
}

TEST(CrossCheckTest, ResolutionLiesBetweenMinAndMax) {
  EXPECT_THAT(error_of(with("  bucket_min: 40\n")),
              HasSubstr("expected at most data.resolution (32), got 40"));
  EXPECT_THAT(error_of(with("  bucket_max: 24\n")),
              HasSubstr("expected at least data.resolution (32), got 24"));
}

}  // namespace
}  // namespace chiliad::spec
