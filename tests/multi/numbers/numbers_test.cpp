#include <gtest/gtest.h>

#include <memory>

#include "tests/support/picture_set.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_run.h"
#include "tests/support/train_ranks.h"

namespace chiliad::test {
namespace {

constexpr int64_t kSteps = 50;

/// One training of 1, 2 and 3 ranks each, looked at by all tests. fp32; ranks differ in the order of sums
/// alone.
class SameNumbersTest : public testing::TestWithParam<int> {
 protected:
  static void SetUpTestSuite() {
    const TempDir folder;
    write_pictures(folder.path() / "pictures", 40);
    index_pictures(folder.path() / "pictures", folder.path() / "index");
    const auto file =
        spec::parse_run_file(tiny_run_file(folder.path() / "index", kSteps), "run.yaml", "run", {});
    const auto index = index::Index::open(folder.path() / "index");
    static_cast<void>(
        dataset::build_token_columns(index, file.model.text_max_tokens, [](int64_t, int64_t) {}));
    for (int ranks = 1; ranks <= 3; ++ranks) {
      results_->push_back(run_ranks(file, index, ranks, kSteps));
    }
  }
  static void TearDownTestSuite() { results_->clear(); }

  static const RanksResult& one() { return results_->front(); }
  static const RanksResult& several() { return results_->at(static_cast<size_t>(GetParam()) - 1); }

 private:
  static inline const std::unique_ptr<std::vector<RanksResult>> results_ =
      std::make_unique<std::vector<RanksResult>>();
};

TEST_P(SameNumbersTest, RanksHaveUnequalWork) {
  EXPECT_GT(several().unequal_steps, kSteps / 2);
}

TEST_P(SameNumbersTest, ItemsOfEveryStepAreEqual) {
  EXPECT_EQ(several().items, one().items);
}

// fp32 sums of some hundred terms in another order: a few units of 6e-8 of the largest.
TEST_P(SameNumbersTest, GradientsOfTheFirstStepAgree) {
  EXPECT_LE(gradient_error(one(), several()), 2e-6);
}

TEST_P(SameNumbersTest, LossesOfTheFirstTenStepsAgree) {
  EXPECT_LE(loss_error(one(), several(), 0, 10), 2e-6);
}

// The differences of the first steps grow through the optimizer.
TEST_P(SameNumbersTest, LossOfStepFiftyAgrees) {
  EXPECT_LE(loss_error(one(), several(), kSteps - 1, kSteps), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Ranks, SameNumbersTest, testing::Values(2, 3));

}  // namespace
}  // namespace chiliad::test
