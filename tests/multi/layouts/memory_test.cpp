#include <gtest/gtest.h>

#include <algorithm>

#include "chiliad/planner/state_memory.h"
#include "tests/support/made_documents.h"
#include "tests/support/tiny_language_run.h"
#include "tests/support/train_ranks.h"

namespace chiliad::test {
namespace {

struct Case {
  const char* name;
  parallel::MeshShape shape;
  bool reshard = true;
  int64_t micro_batch_tokens = 96;
  const char* compute = "fp32";
  int64_t prefetch_layers = 1;
};

class MemoryTest : public testing::TestWithParam<Case> {};

// What the formula leaves out: rows are not cut, so that parts are not quite equal. What is kept for the step
// it counts as for steps of several micro-batches, where all gradients are there before the first is reduced.
TEST_P(MemoryTest, IsWhatTheFormulaSays) {
  const MadeDocuments documents(20);
  const auto& shape = GetParam().shape;
  auto file = spec::parse_run_file(tiny_language_run_file(documents.index().folder(), 2, "llama"), "run.yaml",
                                   "run", {"model.width=96", "model.mlp_width=360", "model.depth=4"});
  file.parallel.nproc = shape.size();
  file.parallel.dp_shard = shape.dp_shard;
  file.parallel.tp = shape.tp;
  file.parallel.reshard_after_forward = GetParam().reshard;
  file.parallel.compute = GetParam().compute;
  file.parallel.prefetch_layers = GetParam().prefetch_layers;
  file.data.micro_batch_tokens = GetParam().micro_batch_tokens;
  file.data.sequence_length = std::min(file.data.sequence_length, file.data.micro_batch_tokens);
  const auto measured = static_cast<double>(run_mesh(file, documents.index(), shape, 2).state_bytes);
  const auto predicted =
      static_cast<double>(planner::state_memory(spec::make_layer_table(file.model), file).training());
  EXPECT_NEAR(measured / predicted, 1.0, 0.05) << measured << " bytes, predicted " << predicted;
}

INSTANTIATE_TEST_SUITE_P(Layouts, MemoryTest,
                         testing::Values(Case{"one", {1, 1, 1}}, Case{"replicas3", {3, 1, 1}},
                                         Case{"shards2", {1, 2, 1}},
                                         Case{"shards2ahead3", {1, 2, 1}, true, 96, "fp32", 3},
                                         Case{"shards3kept", {1, 3, 1}, false, 16},
                                         Case{"hybrid2by2", {2, 2, 1}}, Case{"tensor3", {1, 1, 3}},
                                         Case{"all8", {2, 2, 2}},
                                         Case{"oneBf16", {1, 1, 1}, true, 96, "bf16"},
                                         Case{"shards2bf16", {1, 2, 1}, true, 96, "bf16"},
                                         Case{"shards3keptBf16", {1, 3, 1}, false, 16, "bf16"},
                                         Case{"hybrid2by2bf16", {2, 2, 1}, true, 96, "bf16"}),
                         [](const auto& given) { return given.param.name; });

}  // namespace
}  // namespace chiliad::test
