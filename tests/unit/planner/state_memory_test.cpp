#include "chiliad/planner/state_memory.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace chiliad::planner {
namespace {

spec::RunFile file(int64_t nproc, int64_t dp_shard, int64_t tp) {
  spec::RunFile file;
  file.parallel.nproc = nproc;
  file.parallel.dp_shard = dp_shard;
  file.parallel.tp = tp;
  return file;
}

StateMemory memory_of(const spec::RunFile& file) {
  return state_memory(spec::make_layer_table(file.model), file);
}

int64_t all_bytes() {
  return 4 * spec::make_layer_table({}).num_params();
}

TEST(StateMemoryTest, OneRankOwnsEverything) {
  auto run = file(1, 1, 1);
  run.optimizer.ema = 0.9;
  const auto memory = memory_of(run);
  EXPECT_EQ(memory.weights, all_bytes());
  EXPECT_EQ(memory.gradients, all_bytes());
  EXPECT_EQ(memory.moments, 2 * all_bytes());
  EXPECT_EQ(memory.average, all_bytes());
  EXPECT_EQ(memory.buffers, 0);
}

TEST(StateMemoryTest, ReplicasShareTheOptimizer) {
  const auto memory = memory_of(file(4, 1, 1));
  EXPECT_EQ(memory.weights, all_bytes());
  EXPECT_NEAR(static_cast<double>(memory.moments), 0.5 * static_cast<double>(all_bytes()), 8.0);
  EXPECT_EQ(memory.average, 0);
}

TEST(StateMemoryTest, ShardsShareTheWeights) {
  const auto memory = memory_of(file(4, 4, 1));
  EXPECT_NEAR(static_cast<double>(memory.weights), 0.25 * static_cast<double>(all_bytes()), 8.0);
  EXPECT_NEAR(static_cast<double>(memory.gradients), 0.25 * static_cast<double>(all_bytes()), 8.0);
  EXPECT_GT(memory.buffers, 0);
}

TEST(StateMemoryTest, FrozenComponentsHaveNoOptimizerState) {
  auto run = file(1, 1, 1);
  run.optimizer.frozen = {"backbone"};
  const auto memory = memory_of(run);
  EXPECT_EQ(memory.weights, all_bytes());
  EXPECT_LT(memory.moments, all_bytes());
  EXPECT_EQ(memory.moments, 2 * memory.gradients);
}

TEST(StateMemoryTest, EachLayerAheadCostsAWholeLayerAndItsGradients) {
  auto run = file(2, 2, 1);
  const auto one = memory_of(run);
  run.parallel.prefetch_layers = 2;
  const auto two = memory_of(run);
  int64_t largest = 0;
  for (const auto& layer : spec::make_layer_table(run.model).layers)
    largest = std::max(largest, 4 * layer.num_params());
  EXPECT_LE(two.buffers - one.buffers, 2 * largest);
  EXPECT_GT(two.buffers - one.buffers, largest);
}

TEST(StateMemoryTest, KeepingWholeParametersCostsTheirSize) {
  auto run = file(2, 2, 1);
  const auto freed = memory_of(run);
  run.parallel.reshard_after_forward = false;
  EXPECT_GT(memory_of(run).buffers, freed.buffers);
}

}  // namespace
}  // namespace chiliad::planner
