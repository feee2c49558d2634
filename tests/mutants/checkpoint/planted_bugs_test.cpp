#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "chiliad/base/planted.h"
#include "chiliad/checkpoint/commit.h"
#include "chiliad/checkpoint/reader.h"
#include "tests/support/checkpoint_kit.h"
#include "tests/support/crash_model.h"
#include "tests/support/temp_dir.h"

namespace chiliad::checkpoint {
namespace {

class PlantedBug {
 public:
  explicit PlantedBug(const char* name) { ::setenv("CHILIAD_PLANTED_BUG", name, 1); }
  ~PlantedBug() { ::unsetenv("CHILIAD_PLANTED_BUG"); }
  PlantedBug(const PlantedBug&) = delete;
  PlantedBug& operator=(const PlantedBug&) = delete;
};

TEST(PlantedBugTest, DroppedFsyncIsCaughtByThePowerLoss) {
  const PlantedBug bug("dropped_fsync");
  ASSERT_TRUE(planted_bug("dropped_fsync"));
  EXPECT_THAT(test::crash_at_every_operation(1).violations, testing::Not(testing::IsEmpty()));
}

TEST(PlantedBugTest, CommitFirstIsCaughtByTheCrash) {
  const PlantedBug bug("commit_first");
  ASSERT_TRUE(planted_bug("commit_first"));
  EXPECT_THAT(test::crash_at_every_operation(std::nullopt).violations,
              testing::Contains(testing::HasSubstr("a COMMIT stands for a damaged checkpoint")));
}

TEST(PlantedBugTest, PruneNewestIsCaughtByTheCrash) {
  const PlantedBug bug("prune_newest");
  ASSERT_TRUE(planted_bug("prune_newest"));
  EXPECT_THAT(test::crash_at_every_operation(std::nullopt).violations,
              testing::Contains(testing::HasSubstr("a step whose commit came back is lost")));
}

}  // namespace
}  // namespace chiliad::checkpoint
