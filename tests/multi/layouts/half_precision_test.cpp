// bf16 compute under fp32 shards: near fp32, near one device in bf16, the same bits again.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/made_documents.h"
#include "tests/support/picture_set.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_language_run.h"
#include "tests/support/tiny_run.h"
#include "tests/support/train_ranks.h"

namespace chiliad::test {
namespace {

constexpr int64_t kSteps = 5;
// bf16 has 8 bits of mantissa: a rounding is 4e-3 of a value, and a gradient sums roundings of all layers.
constexpr double kGradientBound = 4e-2;
constexpr double kLossBound = 1e-2;
constexpr double kFp32Error = 1e-5;  // whoever is nearer to fp32 did not compute in bf16

struct Case {
  const char* name;
  bool pictures;
  parallel::MeshShape shape;
  bool reshard = true;
  bool accumulate = false;
};

class HalfPrecisionTest : public testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TempDir>();
    write_pictures(folder_->path() / "pictures", 24);
    index_pictures(folder_->path() / "pictures", folder_->path() / "index");
    const auto index = index::Index::open(folder_->path() / "index");
    const auto made = spec::parse_run_file(tiny_run_file(index.folder(), kSteps), "run.yaml", "run", {});
    static_cast<void>(
        dataset::build_token_columns(index, made.model.text_max_tokens, [](int64_t, int64_t) {}));
    documents_ = std::make_unique<MadeDocuments>(40);
  }
  static void TearDownTestSuite() {
    documents_.reset();
    folder_.reset();
  }

  static spec::RunFile file(const char* compute) {
    const std::string text = GetParam().pictures
                                 ? tiny_run_file(folder_->path() / "index", kSteps)
                                 : tiny_language_run_file(documents_->index().folder(), kSteps, "qwen2");
    auto made = spec::parse_run_file(text, "run.yaml", "run", {});
    made.parallel.compute = compute;
    return made;
  }
  static RanksResult run_one(const char* compute) { return run(file(compute), {}); }
  static RanksResult run_several() {
    auto made = file("bf16");
    made.parallel.reshard_after_forward = GetParam().reshard;
    if (GetParam().accumulate) {
      made.data.micro_batch_items = 1;
      made.data.micro_batch_tokens = 64;
    }
    return run(made, GetParam().shape);
  }

 private:
  static RanksResult run(const spec::RunFile& file, const parallel::MeshShape& shape) {
    const auto index = GetParam().pictures ? index::Index::open(folder_->path() / "index")
                                           : index::Index::open(documents_->index().folder());
    return run_mesh(file, index, shape, kSteps, {.draw_zeros = true, .watch = {}});
  }

  static inline std::unique_ptr<TempDir> folder_;
  static inline std::unique_ptr<MadeDocuments> documents_;
};

TEST_P(HalfPrecisionTest, IsNearFullPrecision) {
  const auto full = run_one("fp32");
  const auto half = run_several();
  EXPECT_EQ(half.items, full.items);
  EXPECT_LE(gradient_error(full, half), kGradientBound);
  EXPECT_GE(gradient_error(full, half), kFp32Error);
  EXPECT_LE(loss_error(full, half, 0, kSteps), kLossBound);
}

TEST_P(HalfPrecisionTest, IsNearOneDevice) {
  const auto one = run_one("bf16");
  const auto several = run_several();
  EXPECT_LE(gradient_error(one, several), kGradientBound);
  EXPECT_LE(loss_error(one, several, 0, kSteps), kLossBound);
}

TEST_P(HalfPrecisionTest, IsBitIdenticalInASecondRun) {
  const auto first = run_several();
  const auto second = run_several();
  EXPECT_EQ(first.losses, second.losses);
  EXPECT_EQ(first.gradients, second.gradients);
}

INSTANTIATE_TEST_SUITE_P(Layouts, HalfPrecisionTest,
                         testing::Values(Case{"oneAccumulating", true, {1, 1, 1}, true, true},
                                         Case{"replicas2", true, {2, 1, 1}},
                                         Case{"shards3accumulating", true, {1, 3, 1}, true, true},
                                         Case{"hybrid2by2kept", true, {2, 2, 1}, false, true},
                                         Case{"tensor2", true, {1, 1, 2}},
                                         Case{"textShards2", false, {1, 2, 1}},
                                         Case{"textAll8accumulating", false, {2, 2, 2}, true, true}),
                         [](const auto& given) { return given.param.name; });

}  // namespace
}  // namespace chiliad::test
