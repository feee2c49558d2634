#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/support/picture_set.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_run.h"
#include "tests/support/train_ranks.h"

namespace chiliad::test {
namespace {

constexpr int64_t kSteps = 5;

/// A layout and settings that must give the numbers of one device.
struct Case {
  const char* name;
  parallel::MeshShape shape;
  std::vector<std::string> frozen = {};
  bool reshard = true;
  int64_t micro_batch_items = 32;
  const char* recompute = "none";
  int64_t prefetch_layers = 1;
};

/// fp32; layouts differ in the order of sums alone.
class LayoutTest : public testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TempDir>();
    write_pictures(folder_->path() / "pictures", 24);
    index_pictures(folder_->path() / "pictures", folder_->path() / "index");
    const auto index = index::Index::open(folder_->path() / "index");
    static_cast<void>(
        dataset::build_token_columns(index, file({}).model.text_max_tokens, [](int64_t, int64_t) {}));
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static spec::RunFile file(const std::vector<std::string>& frozen) {
    auto made = spec::parse_run_file(tiny_run_file(folder_->path() / "index", kSteps), "run.yaml", "run", {});
    made.model.width = 36;  // six heads, that two, three or six ranks share
    made.model.heads = 6;
    made.optimizer.frozen = frozen;
    return made;
  }
  static void adapt(spec::RunFile& settings) {
    settings.parallel.reshard_after_forward = GetParam().reshard;
    settings.parallel.recompute = GetParam().recompute;
    settings.parallel.prefetch_layers = GetParam().prefetch_layers;
    settings.data.micro_batch_items = GetParam().micro_batch_items;
  }
  static RanksResult run(const spec::RunFile& file, const parallel::MeshShape& shape) {
    // Behind a head of zeros the first gradients would be zero too.
    return run_mesh(file, index::Index::open(folder_->path() / "index"), shape, kSteps,
                    {.draw_zeros = true, .watch = {}});
  }

 private:
  static inline std::unique_ptr<TempDir> folder_;
};

TEST_P(LayoutTest, GivesTheNumbersOfOneDevice) {
  auto settings = file(GetParam().frozen);
  const auto one = run(settings, {});
  adapt(settings);
  const auto several = run(settings, GetParam().shape);
  EXPECT_EQ(layout_difference(one, several), "");
}

TEST_P(LayoutTest, IsBitIdenticalInASecondRun) {
  auto settings = file(GetParam().frozen);
  adapt(settings);
  const auto first = run(settings, GetParam().shape);
  const auto second = run(settings, GetParam().shape);
  EXPECT_EQ(first.losses, second.losses);
  EXPECT_EQ(first.gradients, second.gradients);
}

TEST_P(LayoutTest, RecomputationChangesNoBit) {
  auto settings = file(GetParam().frozen);
  adapt(settings);
  settings.parallel.recompute = "none";
  const auto kept = run(settings, GetParam().shape);
  for (const char* mode : {"selective", "layers"}) {
    settings.parallel.recompute = mode;
    const auto recomputed = run(settings, GetParam().shape);
    EXPECT_EQ(kept.losses, recomputed.losses) << mode;
    EXPECT_EQ(kept.gradients, recomputed.gradients) << mode;
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, LayoutTest,
                         testing::Values(Case{"replicas3", {3, 1, 1}}, Case{"shards2", {1, 2, 1}},
                                         Case{"shards3kept", {1, 3, 1}, {}, false},
                                         Case{"shards5accumulating", {1, 5, 1}, {}, true, 1},
                                         Case{"hybrid2by2", {2, 2, 1}},
                                         Case{"hybrid2by3keptAccumulating", {2, 3, 1}, {}, false, 1},
                                         Case{"shards3ahead3", {1, 3, 1}, {}, true, 2, "none", 3},
                                         Case{"hybrid2by2ahead16", {2, 2, 1}, {}, true, 2, "none", 16},
                                         Case{"shards8", {1, 8, 1}}, Case{"tensor2", {1, 1, 2}},
                                         Case{"tensor3accumulating", {1, 1, 3}, {}, true, 1},
                                         Case{"tensor6", {1, 1, 6}}, Case{"all8", {2, 2, 2}},
                                         Case{"all8recomputing", {2, 2, 2}, {}, true, 1, "layers"},
                                         Case{"shards3tensor2kept", {1, 3, 2}, {}, false, 2},
                                         Case{"replicas2tensor3frozenText", {2, 1, 3}, {"text_encoder"}},
                                         Case{"oneRankAccumulating", {1, 1, 1}, {}, true, 1},
                                         Case{"frozenText", {1, 2, 1}, {"text_encoder"}},
                                         Case{"frozenTextReplicas", {2, 1, 1}, {"text_encoder"}},
                                         Case{"onlyHead", {2, 2, 1}, {"text_encoder", "backbone"}, true, 2},
                                         Case{"frozenBackboneKept", {1, 3, 1}, {"backbone"}, false}),
                         [](const auto& given) { return given.param.name; });

}  // namespace
}  // namespace chiliad::test
