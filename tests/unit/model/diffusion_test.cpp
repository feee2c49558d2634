#include "chiliad/model/diffusion.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "chiliad/base/error.h"
#include "chiliad/base/rng.h"
#include "chiliad/model/build_model.h"
#include "chiliad/model/diffusion/flux.h"

namespace chiliad::model {
namespace {

using testing::HasSubstr;

constexpr int64_t kItems = 2;
constexpr int64_t kTokens = 5;

spec::DiffusionOptions small(const std::string& family) {
  spec::DiffusionOptions options;
  options.family = family;
  options.heads = 3;
  options.head_size = 8;
  options.depth = 2;
  options.sample_size = 8;
  options.in_channels = options.out_channels = 4;
  options.classes = 10;
  options.text_channels = family == "dit" ? 0 : 20;
  options.pooled_channels = 12;
  options.size_conditions = family == "pixart";
  options.single_depth = family == "flux" ? 1 : 0;
  options.guidance = family == "flux";
  options.qk_norm = true;
  options.rope_axes = {2, 2, 4};
  if (family == "sd3") options.dual_attention_layers = {0};
  options.max_positions = 6;
  return options;
}

at::Tensor noise(std::vector<int64_t> sizes, uint64_t seed) {
  at::Tensor out = at::empty(sizes, at::kFloat);
  Rng rng({seed});
  rng.fill_normal({out.mutable_data_ptr<float>(), static_cast<size_t>(out.numel())});
  return out;
}

LatentBatch make_batch(const spec::DiffusionOptions& options) {
  LatentBatch batch;
  batch.latents = noise({kItems, 4, 8, 12}, 1);
  batch.time = at::tensor(std::vector<float>{13.0F, 871.0F});
  if (options.family == "dit") {
    batch.labels = at::tensor(std::vector<int64_t>{3, 10});
    return batch;
  }
  batch.text = noise({kItems, kTokens, 20}, 2);
  if (options.family == "pixart") {
    batch.text_mask = at::arange(kTokens).unsqueeze(0) < at::tensor(std::vector<int64_t>{5, 3}).unsqueeze(1);
    batch.resolution = at::full({kItems, 2}, 1024.0, at::kFloat);
    batch.aspect_ratio = at::full({kItems, 1}, 1.0, at::kFloat);
    return batch;
  }
  batch.pooled = noise({kItems, 12}, 3);
  if (options.guidance) batch.guidance = at::full({kItems}, 3.5, at::kFloat);
  return batch;
}

/// Layers whose parameters are all random, so that nothing is multiplied by zero.
std::vector<std::unique_ptr<layers::Layer>> random_layers(const spec::DiffusionOptions& options) {
  auto built = build_diffusion(options);
  for (const auto& layer : built) {
    std::vector<at::Tensor> params;
    for (const auto& param : layer->decl().params)
      params.push_back((noise(param.shape.sizes(), params.size()) * 0.2).set_requires_grad(true));
    layer->bind(std::move(params));
  }
  return built;
}

at::Tensor predict(const spec::DiffusionOptions& options, const LatentBatch& batch) {
  const at::NoGradGuard no_grad;
  layers::Carry carry = make_diffusion_input(options, batch);
  for (const auto& layer : random_layers(options)) layer->forward(carry);
  return carry.get("prediction");
}

std::string refusal(const spec::DiffusionOptions& options, const LatentBatch& batch) {
  try {
    (void)make_diffusion_input(options, batch);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "accepted";
}

class DiffusionFamilyTest : public testing::TestWithParam<const char*> {
 protected:
  spec::DiffusionOptions options_ = small(GetParam());
  LatentBatch batch_ = make_batch(options_);
};

TEST_P(DiffusionFamilyTest, PredictionHasTheShapeOfTheLatents) {
  EXPECT_EQ(predict(options_, batch_).sizes(), batch_.latents.sizes());
}

TEST_P(DiffusionFamilyTest, LayersWriteWhatTheyDeclare) {
  layers::Carry carry = make_diffusion_input(options_, batch_);
  for (const auto& layer : random_layers(options_)) {
    const layers::Carry before = carry;
    layer->forward(carry);
    std::vector<std::string> written;
    for (const auto& [name, tensor] : carry.entries()) {
      if (!before.has(name) || !before.get(name).is_same(tensor)) written.push_back(name);
    }
    EXPECT_THAT(written, testing::UnorderedElementsAreArray(layer->decl().writes)) << layer->decl().name;
  }
}

TEST_P(DiffusionFamilyTest, LayersReadWhatTheyDeclare) {
  layers::Carry carry = make_diffusion_input(options_, batch_);
  const layers::Carry inputs = carry;
  for (const auto& layer : random_layers(options_)) {
    layers::Carry least = inputs;
    for (const auto& name : layer->decl().reads) least.set(name, carry.get(name));
    EXPECT_NO_THROW(layer->forward(least)) << layer->decl().name;
    layer->forward(carry);
  }
}

TEST_P(DiffusionFamilyTest, ItemsDoNotMix) {
  const at::Tensor before = predict(options_, batch_);
  batch_.latents = batch_.latents.clone();
  batch_.latents[1].mul_(-1.0);
  const at::Tensor after = predict(options_, batch_);
  EXPECT_TRUE(at::allclose(after[0], before[0], 1e-5, 1e-5));
  EXPECT_FALSE(at::allclose(after[1], before[1], 1e-3, 1e-3));
}

TEST_P(DiffusionFamilyTest, TimeIsNeeded) {
  batch_.time.reset();
  EXPECT_THAT(refusal(options_, batch_), HasSubstr("entry 'time': expected a tensor"));
}

TEST_P(DiffusionFamilyTest, EveryParameterHasAnInitialValue) {
  for (const auto& layer : build_diffusion(options_)) {
    for (const auto& param : layer->decl().params) {
      at::Tensor value = at::full(param.shape.sizes(), 7.0, at::kFloat);
      initialise(param, 1, value);
      EXPECT_FALSE(value.eq(7.0).any().item<bool>()) << param.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, DiffusionFamilyTest, testing::Values("dit", "pixart", "sd3", "flux"),
                         [](const auto& test) { return std::string(test.param); });

TEST(PixartTest, MaskedTokensHaveNoEffect) {
  const auto options = small("pixart");
  auto batch = make_batch(options);
  const at::Tensor before = predict(options, batch);
  batch.text = batch.text.clone();
  batch.text[1].narrow(0, 3, 2).fill_(100.0);
  EXPECT_TRUE(predict(options, batch).equal(before));
}

TEST(PixartTest, PaddingHasNoEffect) {
  const auto options = small("pixart");
  auto batch = make_batch(options);
  const at::Tensor before = predict(options, batch);
  batch.text = at::cat({batch.text, noise({kItems, 4, 20}, 9)}, 1);
  batch.text_mask = at::cat({batch.text_mask, at::zeros({kItems, 4}, at::kBool)}, 1);
  EXPECT_TRUE(at::allclose(predict(options, batch), before, 1e-5, 1e-5));
}

TEST(Sd3Test, AMaskIsRefused) {
  const auto options = small("sd3");
  auto batch = make_batch(options);
  batch.text_mask = at::ones({kItems, kTokens}, at::kBool);
  EXPECT_THAT(refusal(options, batch), HasSubstr("entry 'text_mask': expected none"));
}

TEST(Sd3Test, PositionsAreCutAtTheCentre) {
  const auto options = small("sd3");
  const auto layer = std::move(build_diffusion(options).front());
  const at::Tensor table = at::arange(36, at::kFloat).view({1, 36, 1}).expand({1, 36, 24}).contiguous();
  layer->bind({table});
  layers::Carry carry;
  carry.set("latents", at::zeros({1, 4, 4, 12}, at::kFloat));  // 2 x 6 patches of 6 x 6 positions
  layer->forward(carry);
  EXPECT_EQ(carry.get("image_positions")[0][0].item<float>(), 2 * 6);
  EXPECT_EQ(carry.get("image_positions")[11][0].item<float>(), 3 * 6 + 5);
}

TEST(Sd3Test, PicturesLargerThanTheTableAreRefused) {
  const auto options = small("sd3");
  auto batch = make_batch(options);
  batch.latents = noise({kItems, 4, 8, 14}, 1);
  EXPECT_THAT(refusal(options, batch), HasSubstr("table of positions"));
}

TEST(FluxTest, TextIsAtTheOrigin) {
  const at::Tensor positions = flux_positions(2, {{2, 3}});
  EXPECT_EQ(positions.size(0), 8);
  EXPECT_EQ(positions.narrow(0, 0, 2).abs().sum().item<float>(), 0.0F);
  EXPECT_EQ(positions[7][1].item<float>(), 1.0F);
  EXPECT_EQ(positions[7][2].item<float>(), 2.0F);
}

}  // namespace
}  // namespace chiliad::model
