// Each planted bug must be seen by the function that the real test checks with.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/support/picture_set.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_run.h"
#include "tests/support/train_job.h"
#include "tests/support/train_ranks.h"

namespace chiliad::test {
namespace {

class ScopedBug {
 public:
  explicit ScopedBug(const char* name) { ::setenv("CHILIAD_PLANTED_BUG", name, 1); }
  ~ScopedBug() { ::unsetenv("CHILIAD_PLANTED_BUG"); }
  ScopedBug(const ScopedBug&) = delete;
  ScopedBug& operator=(const ScopedBug&) = delete;
};

/// Error of the first step's gradient of 3 ranks with a bug, against 1 rank without.
double gradient_error_with(const char* bug) {
  const TempDir folder;
  write_pictures(folder.path() / "pictures", 20);
  index_pictures(folder.path() / "pictures", folder.path() / "index");
  const auto file = spec::parse_run_file(tiny_run_file(folder.path() / "index", 2), "run.yaml", "run", {});
  const auto index = index::Index::open(folder.path() / "index");
  static_cast<void>(dataset::build_token_columns(index, file.model.text_max_tokens, [](int64_t, int64_t) {}));
  const auto want = run_ranks(file, index, 1, 1);
  const ScopedBug planted(bug);
  return gradient_error(want, run_ranks(file, index, 3, 1));
}

TEST(PlantedBugTest, NoBugPasses) {
  EXPECT_LE(gradient_error_with("none"), 2e-6);
}

TEST(PlantedBugTest, AWrongNormaliserIsSeenInTheGradient) {
  EXPECT_GT(gradient_error_with("wrong_normaliser"), 2e-6);
}

TEST(PlantedBugTest, SwappedRanksAreSeenInTheGradient) {
  EXPECT_GT(gradient_error_with("swapped_ranks"), 2e-6);
}

TEST(PlantedBugTest, ACursorOffByOneIsSeenInTheLedger) {
  const TrainJob job(8);
  ASSERT_EQ(job.train("reference", 1).exit_code, 0);
  const Program::Environment bug{{"CHILIAD_PLANTED_BUG", "cursor_off_by_one"}};
  ASSERT_EQ(job.train("run", 1, bug, {"--set", "run.steps=4"}).exit_code, 0);
  static_cast<void>(job.train("run", 1, bug));
  EXPECT_NE(ledger_difference(job, "reference", "run"), "");
}

}  // namespace
}  // namespace chiliad::test
