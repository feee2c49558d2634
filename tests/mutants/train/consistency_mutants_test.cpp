// Planted damage of one rank must be found in the step in which it happens, and its rank named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "chiliad/train/consistency.h"
#include "tests/support/picture_set.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_run.h"
#include "tests/support/train_job.h"
#include "tests/support/train_ranks.h"

namespace chiliad::test {
namespace {

using testing::HasSubstr;

/// A bug of rank 1, the layout in which it is looked for, and what must be said.
struct Case {
  const char* name;
  const char* bug;
  parallel::MeshShape shape;
  const char* says;
};

class ConsistencyMutantTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    write_pictures(folder_.path() / "pictures", 20);
    index_pictures(folder_.path() / "pictures", folder_.path() / "index");
    file_ = spec::parse_run_file(
        tiny_run_file(folder_.path() / "index", 4), "run.yaml", "run",
        {"observe.check_every=1", "parallel.timeout_s=20", "model.width=36", "model.heads=6"});
    static_cast<void>(
        dataset::build_token_columns(index(), file_.model.text_max_tokens, [](int64_t, int64_t) {}));
    ::setenv("CHILIAD_PLANTED_BUG", GetParam().bug, 1);
  }
  void TearDown() override { ::unsetenv("CHILIAD_PLANTED_BUG"); }
  [[nodiscard]] index::Index index() const { return index::Index::open(folder_.path() / "index"); }

  TempDir folder_;
  spec::RunFile file_;
};

TEST_P(ConsistencyMutantTest, IsNamed) {
  try {
    static_cast<void>(run_mesh(file_, index(), GetParam().shape, 4));
    FAIL() << "not found";
  } catch (const train::RankMismatch& error) {
    EXPECT_THAT(error.what(), HasSubstr(GetParam().says));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Bugs, ConsistencyMutantTest,
    testing::Values(
        Case{"bitOfAReplica", "flipped_bit", {3, 1, 1}, "step 2: parameters of rank 1 are not those of its "},
        // Whom the majority names depends on who had gathered the layer before its owner's bit flipped.
        Case{"bitThatARankOwns", "flipped_owned_bit", {3, 1, 1}, "step 2: parameters of rank "},
        Case{"bitOfAHybrid", "flipped_bit", {3, 2, 1}, "step 2: parameters of rank 1 are not those of its "},
        Case{"bitOfATensorParallelCopy",
             "flipped_copy_bit",
             {1, 1, 3},
             "parameters of rank 1 are not those of "
             "its tensor-parallel peers"},
        Case{"bitOfLoadedData", "spoiled_data", {1, 1, 3}, "data of rank 1 changed after it was loaded"},
        Case{"otherProgram",
             "other_program",
             {3, 1, 1},
             "the program must be the same on all ranks: rank 1 has"},
        Case{"otherProgramOfShards",
             "other_program",
             {1, 3, 1},
             "the program must be the same on all ranks: "
             "rank 1 has"}),
    [](const auto& given) { return given.param.name; });

class UncheckedMutantTest : public ConsistencyMutantTest {};

// Why it is looked for before the update: after it, all replicas have the damage, or none.
TEST_P(UncheckedMutantTest, IsNotNamedByChance) {
  file_.observe.check_every = 0;
  EXPECT_NO_THROW(static_cast<void>(run_mesh(file_, index(), GetParam().shape, 4)));
}

INSTANTIATE_TEST_SUITE_P(Bugs, UncheckedMutantTest,
                         testing::Values(Case{"bitOfAReplica", "flipped_bit", {3, 1, 1}, ""},
                                         Case{"bitThatARankOwns", "flipped_owned_bit", {3, 1, 1}, ""}),
                         [](const auto& given) { return given.param.name; });

TEST(FlippedBitTest, NothingIsSavedFromThatState) {
  const TrainJob job(8);
  const Program::Environment bug{{"CHILIAD_PLANTED_BUG", "flipped_owned_bit"}};
  const auto result =
      job.train("run", 3, bug, {"--set", "checkpoint.every=1", "--set", "observe.check_every=1"});
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_THAT(result.err, HasSubstr("step 2: parameters of rank 1 are not those of its replicas"));
  EXPECT_EQ(job.committed_steps("run").front(), 2);  // two steps were done, and are whole
}

TEST(OtherProgramFileTest, IsNamedBeforeTheFirstStep) {
  const TrainJob job(4);
  const auto result = job.train("run", 3, {{"CHILIAD_PLANTED_BUG", "other_program_file"}});
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(result.err, HasSubstr("rank 1: program: expected the same on all 3 ranks"));
}

}  // namespace
}  // namespace chiliad::test
