// Items of several shapes in a pack against the same items alone: predictions and gradients.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "chiliad/base/rng.h"
#include "chiliad/model/diffusion.h"
#include "chiliad/ops/backward.h"
#include "chiliad/ops/patches.h"

namespace chiliad::model {
namespace {

// Before the first operator looks at it: kernels are tried for fp32, too, where the machine has them.
[[maybe_unused]] const bool kBothTypes = ::setenv("CHILIAD_FP32_KERNELS", "1", 1) == 0;

struct Shape2 {
  int64_t rows;
  int64_t columns;
  int64_t text;
};
// Patches; neighbours of one shape, one patch alone, one token alone.
constexpr Shape2 kShapes[] = {{6, 4, 5}, {6, 4, 1}, {3, 6, 9}, {1, 1, 3}, {5, 5, 4}};
constexpr double kTolerance = 2e-5;  // fp32, sums in another order

spec::DiffusionOptions small(const std::string& family) {
  spec::DiffusionOptions options;
  options.family = family;
  options.heads = 3;
  options.head_size = 16;
  options.depth = 2;
  options.sample_size = 8;
  options.in_channels = 4;
  options.out_channels = family == "dit" ? 8 : 4;
  options.classes = 10;
  options.text_channels = family == "dit" ? 0 : 20;
  options.pooled_channels = 12;
  options.size_conditions = family == "pixart";
  options.single_depth = family == "flux" ? 2 : 0;
  options.guidance = family == "flux";
  options.qk_norm = true;
  options.rope_axes = {4, 4, 8};
  if (family == "sd3") options.dual_attention_layers = {0};
  options.max_positions = 6;
  return options;
}

at::Tensor noise(std::vector<int64_t> sizes, uint64_t seed) {
  at::Tensor out = at::empty(sizes, at::kFloat);
  Rng rng({seed, 5});
  rng.fill_normal({out.mutable_data_ptr<float>(), static_cast<size_t>(out.numel())});
  return out;
}

LatentBatch alone(const spec::DiffusionOptions& options, uint64_t i) {
  const auto& [rows, columns, text] = kShapes[i];
  LatentBatch batch;
  batch.latents = noise({1, 4, rows * options.patch, columns * options.patch}, 10 + i);
  batch.time = at::full({1}, 37.0 + 150.0 * static_cast<double>(i), at::kFloat);
  if (options.family == "dit") {
    batch.labels = at::full({1}, static_cast<int64_t>(2 * i), at::kLong);
    return batch;
  }
  batch.text = noise({1, text, 20}, 20 + i);
  if (options.family == "pixart") {
    batch.resolution = at::full({1, 2}, 64.0 + 32.0 * static_cast<double>(i), at::kFloat);
    batch.aspect_ratio = at::full({1, 1}, 0.5 + static_cast<double>(i), at::kFloat);
    return batch;
  }
  batch.pooled = noise({1, 12}, 30 + i);
  if (options.guidance) batch.guidance = at::full({1}, 1.5 + static_cast<double>(i), at::kFloat);
  return batch;
}

LatentBatch pack_of(const spec::DiffusionOptions& options) {
  std::vector<LatentBatch> items;
  for (uint64_t i = 0; i < std::size(kShapes); ++i) items.push_back(alone(options, i));
  const auto joined = [&](at::Tensor LatentBatch::*entry, int64_t axis) {
    std::vector<at::Tensor> parts;
    for (const auto& item : items)
      if ((item.*entry).defined()) parts.push_back(item.*entry);
    return parts.empty() ? at::Tensor() : at::cat(parts, axis);
  };
  LatentBatch pack;
  for (auto& item : items) item.latents = ops::patches_of(item.latents, options.patch);
  pack.latents = joined(&LatentBatch::latents, 1);
  pack.text = joined(&LatentBatch::text, 1);
  for (const auto entry : {&LatentBatch::time, &LatentBatch::labels, &LatentBatch::pooled,
                           &LatentBatch::guidance, &LatentBatch::resolution, &LatentBatch::aspect_ratio})
    pack.*entry = joined(entry, 0);
  std::vector<int64_t> grids;
  std::vector<int64_t> texts;
  for (const auto& [rows, columns, text] : kShapes) {
    grids.insert(grids.end(), {rows, columns});
    texts.push_back(text);
  }
  pack.grids = at::tensor(grids).view({-1, 2});
  if (options.family != "dit") pack.text_lengths = at::tensor(texts);
  return pack;
}

struct Result {
  at::Tensor prediction;
  std::vector<at::Tensor> gradients;
};

/// `weigh`: gives the loss of a prediction. All parameters are random, so that nothing is multiplied by zero.
template <typename Weigh>
Result run(const spec::DiffusionOptions& options, const LatentBatch& batch, const Weigh& weigh) {
  layers::Carry carry = make_diffusion_input(options, batch);
  std::vector<at::Tensor> all;
  std::vector<std::unique_ptr<layers::Layer>> built = build_diffusion(options);
  for (const auto& layer : built) {
    std::vector<at::Tensor> params;
    for (const auto& param : layer->decl().params) {
      params.push_back((noise(param.shape.sizes(), 100 + all.size()) * 0.1).set_requires_grad(true));
      all.push_back(params.back());
    }
    layer->bind(std::move(params));
    layer->forward(carry);
  }
  const at::Tensor prediction = carry.get("prediction");
  ops::backward({weigh(prediction)});
  Result result{prediction.detach(), {}};
  for (const auto& param : all)
    result.gradients.push_back(param.grad().defined() ? param.grad() : at::zeros_like(param));
  return result;
}

class DiffusionPackTest : public testing::TestWithParam<const char*> {
 protected:
  spec::DiffusionOptions options_ = small(GetParam());

  [[nodiscard]] at::Tensor weights_of(uint64_t i) const {
    const auto& [rows, columns, text] = kShapes[i];
    return noise({1, options_.out_channels, rows * options_.patch, columns * options_.patch}, 60 + i);
  }
  [[nodiscard]] Result alone_result(uint64_t i) const {
    return run(options_, alone(options_, i), [&](const at::Tensor& p) { return (p * weights_of(i)).sum(); });
  }
  [[nodiscard]] Result pack_result() const {
    std::vector<at::Tensor> weights;
    for (uint64_t i = 0; i < std::size(kShapes); ++i)
      weights.push_back(ops::patches_of(weights_of(i), options_.patch));
    return run(options_, pack_of(options_),
               [&](const at::Tensor& p) { return (p * at::cat(weights, 1)).sum(); });
  }
  /// Of the item's rows in the pack, over the largest value.
  [[nodiscard]] double prediction_error(const Result& pack, uint64_t i) const {
    int64_t first = 0;
    for (uint64_t j = 0; j < i; ++j) first += kShapes[j].rows * kShapes[j].columns;
    const at::Tensor want = ops::patches_of(alone_result(i).prediction, options_.patch);
    const at::Tensor got = pack.prediction.narrow(1, first, want.size(1));
    return ((want - got).abs().max() / want.abs().max()).item<double>();
  }
};

TEST_P(DiffusionPackTest, PredictionsAreThoseAlone) {
  const Result pack = pack_result();
  for (uint64_t i = 0; i < std::size(kShapes); ++i) EXPECT_LT(prediction_error(pack, i), kTolerance) << i;
}

TEST_P(DiffusionPackTest, GradientsAreTheSumOfThoseAlone) {
  const Result pack = pack_result();
  std::vector<at::Tensor> sums;
  for (uint64_t i = 0; i < std::size(kShapes); ++i) {
    const auto one = alone_result(i).gradients;
    if (sums.empty()) sums.resize(one.size());
    for (size_t p = 0; p < one.size(); ++p) sums[p] = sums[p].defined() ? sums[p] + one[p] : one[p];
  }
  ASSERT_EQ(sums.size(), pack.gradients.size());
  double largest = 0.0;
  for (const auto& sum : sums) largest = std::max(largest, sum.abs().max().item<double>());
  for (size_t p = 0; p < sums.size(); ++p) {
    // Biases of keys have no gradient but rounding.
    const double scale = std::max(1e-2 * largest, sums[p].abs().max().item<double>());
    EXPECT_LT((sums[p] - pack.gradients[p]).abs().max().item<double>() / scale, kTolerance) << p;
  }
}

TEST_P(DiffusionPackTest, ItemsThatSeeEachOtherAreNoticed) {
  ::setenv("CHILIAD_PLANTED_BUG", "pack_items_meet", 1);
  const Result pack = pack_result();
  ::unsetenv("CHILIAD_PLANTED_BUG");
  EXPECT_GT(prediction_error(pack, 0), 100 * kTolerance);
}

INSTANTIATE_TEST_SUITE_P(Families, DiffusionPackTest, testing::Values("dit", "pixart", "sd3", "flux"),
                         [](const auto& given) { return std::string(given.param); });

}  // namespace
}  // namespace chiliad::model
