#include "chiliad/planner/state_memory.h"

#include <gtest/gtest.h>

namespace chiliad::planner {
namespace {

TEST(StateMemoryTest, OneRankOwnsEverything) {
  const auto memory = state_memory(1000, 1, true);
  EXPECT_EQ(memory.weights, 4000);
  EXPECT_EQ(memory.moments, 8000);
  EXPECT_EQ(memory.average, 4000);
}

TEST(StateMemoryTest, RanksShareTheOptimizer) {
  const auto memory = state_memory(1000, 4, false);
  EXPECT_EQ(memory.weights, 4000);
  EXPECT_EQ(memory.moments, 2000);
  EXPECT_EQ(memory.average, 0);
}

TEST(StateMemoryTest, TheTotalIsTheSum) {
  const auto memory = state_memory(10, 3, true);
  EXPECT_EQ(memory.total(),
            memory.weights + memory.gradients + memory.moments + memory.average + memory.snapshots);
}

}  // namespace
}  // namespace chiliad::planner
