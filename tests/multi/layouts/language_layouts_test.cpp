#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/made_documents.h"
#include "tests/support/tiny_language_run.h"
#include "tests/support/train_ranks.h"

namespace chiliad::test {
namespace {

constexpr int64_t kSteps = 5;

struct Case {
  const char* name;
  const char* family;  // qwen2 with a tied head
  parallel::MeshShape shape;
  std::vector<std::string> frozen = {};
  bool reshard = true;
  int64_t micro_batch_tokens = 96;
  const char* recompute = "none";
};

class LanguageLayoutTest : public testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() { documents_ = std::make_unique<MadeDocuments>(40); }
  static void TearDownTestSuite() { documents_.reset(); }

  static spec::RunFile file() {
    const auto& index = documents_->index();
    auto made = spec::parse_run_file(tiny_language_run_file(index.folder(), kSteps, GetParam().family),
                                     "run.yaml", "run", {});
    made.optimizer.frozen = GetParam().frozen;
    return made;
  }
  static spec::RunFile several_file() {
    auto made = file();
    made.parallel.reshard_after_forward = GetParam().reshard;
    made.parallel.recompute = GetParam().recompute;
    made.data.micro_batch_tokens = GetParam().micro_batch_tokens;
    return made;
  }
  static RanksResult run(const spec::RunFile& file, const parallel::MeshShape& shape) {
    return run_mesh(file, documents_->index(), shape, kSteps);
  }

 private:
  static inline std::unique_ptr<MadeDocuments> documents_;
};

TEST_P(LanguageLayoutTest, GivesTheNumbersOfOneDevice) {
  const auto one = run(file(), {});
  const auto several = run(several_file(), GetParam().shape);
  EXPECT_EQ(layout_difference(one, several), "");
}

TEST_P(LanguageLayoutTest, IsBitIdenticalInASecondRun) {
  const auto first = run(several_file(), GetParam().shape);
  const auto second = run(several_file(), GetParam().shape);
  EXPECT_EQ(first.losses, second.losses);
  EXPECT_EQ(first.gradients, second.gradients);
}

TEST_P(LanguageLayoutTest, RecomputationChangesNoBit) {
  auto settings = several_file();
  settings.parallel.recompute = "none";
  const auto kept = run(settings, GetParam().shape);
  for (const char* mode : {"selective", "layers"}) {
    settings.parallel.recompute = mode;
    const auto recomputed = run(settings, GetParam().shape);
    EXPECT_EQ(kept.losses, recomputed.losses) << mode;
    EXPECT_EQ(kept.gradients, recomputed.gradients) << mode;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, LanguageLayoutTest,
    testing::Values(Case{"replicas3", "llama", {3, 1, 1}}, Case{"shards5", "llama", {1, 5, 1}},
                    Case{"tiedShards3accumulating", "qwen2", {1, 3, 1}, {}, true, 64},
                    Case{"tiedHybrid2by2kept", "qwen2", {2, 2, 1}, {}, false},
                    Case{"tensor2", "llama", {1, 1, 2}}, Case{"tensor3", "llama", {1, 1, 3}, {}, true, 64},
                    Case{"tiedTensor6", "qwen2", {1, 1, 6}}, Case{"all8", "llama", {2, 2, 2}},
                    Case{"tiedAll8recomputing", "qwen2", {2, 2, 2}, {}, true, 64, "layers"},
                    Case{"tiedShards2tensor3", "qwen2", {1, 2, 3}},
                    Case{"frozenEmbedding", "llama", {1, 2, 2}, {"embedding"}},
                    Case{"tiedFrozenEmbedding", "qwen2", {1, 2, 1}, {"embedding"}},
                    Case{"frozenBackbone", "llama", {1, 2, 1}, {"backbone"}, false}),
    [](const auto& given) { return given.param.name; });

}  // namespace
}  // namespace chiliad::test
