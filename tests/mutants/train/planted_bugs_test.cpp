// Each planted bug must be seen by the function that the real test checks with.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>

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

/// A layout, and a bug that the check of tests/multi/layouts must see in it.
struct Case {
  const char* name;
  const char* bug;
  parallel::MeshShape shape;
};

class LayoutMutantTest : public testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TempDir>();
    write_pictures(folder_->path() / "pictures", 20);
    index_pictures(folder_->path() / "pictures", folder_->path() / "index");
    const auto index = index::Index::open(folder_->path() / "index");
    static_cast<void>(
        dataset::build_token_columns(index, file().model.text_max_tokens, [](int64_t, int64_t) {}));
    one_ = run({});
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static spec::RunFile file() {
    return spec::parse_run_file(tiny_run_file(folder_->path() / "index", kSteps), "run.yaml", "run", {});
  }
  static RanksResult run(const parallel::MeshShape& shape) {
    return run_mesh(file(), index::Index::open(folder_->path() / "index"), shape, kSteps);
  }
  static const RanksResult& one_device() { return one_; }

 private:
  static constexpr int64_t kSteps = 4;
  static inline std::unique_ptr<TempDir> folder_;
  static inline RanksResult one_;
};

std::string name_of(const testing::TestParamInfo<Case>& given) {
  return given.param.name;
}

TEST_P(LayoutMutantTest, IsSeen) {
  const ScopedBug planted(GetParam().bug);
  const std::string difference = layout_difference(one_device(), run(GetParam().shape));
  EXPECT_NE(difference, "");
  RecordProperty("difference", difference);
}

INSTANTIATE_TEST_SUITE_P(Bugs, LayoutMutantTest,
                         testing::Values(Case{"normaliserOfReplicas", "wrong_normaliser", {3, 1, 1}},
                                         Case{"normaliserOfShards", "wrong_normaliser", {1, 2, 1}},
                                         Case{"swappedReplicas", "swapped_ranks", {3, 1, 1}},
                                         Case{"swappedShards", "swapped_ranks", {1, 3, 1}},
                                         Case{"swappedHybrid", "swapped_ranks", {2, 2, 1}},
                                         Case{"staleGather", "stale_gather", {1, 2, 1}},
                                         Case{"staleGatherHybrid", "stale_gather", {2, 2, 1}},
                                         Case{"earlyReuse", "early_reuse", {1, 2, 1}},
                                         Case{"earlyReuseHybrid", "early_reuse", {2, 2, 1}},
                                         Case{"noReplicatedSum", "missing_replicated_sum", {1, 1, 2}},
                                         Case{
                                             "noReplicatedSumOfShards", "missing_replicated_sum", {1, 2, 2}}),
                         name_of);

class LayoutWithoutBugTest : public LayoutMutantTest {};

TEST_P(LayoutWithoutBugTest, Passes) {
  EXPECT_EQ(layout_difference(one_device(), run(GetParam().shape)), "");
}

INSTANTIATE_TEST_SUITE_P(Layouts, LayoutWithoutBugTest,
                         testing::Values(Case{"replicas3", "", {3, 1, 1}}, Case{"shards2", "", {1, 2, 1}},
                                         Case{"shards3", "", {1, 3, 1}}, Case{"hybrid2by2", "", {2, 2, 1}},
                                         Case{"tensor2", "", {1, 1, 2}},
                                         Case{"shards2tensor2", "", {1, 2, 2}}),
                         name_of);

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
