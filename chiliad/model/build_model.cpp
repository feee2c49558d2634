#include "chiliad/model/build_model.h"

#include <ATen/ATen.h>

#include <cmath>

#include "chiliad/base/error.h"
#include "chiliad/base/hash.h"
#include "chiliad/base/rng.h"
#include "chiliad/layers/layer_maker.h"
#include "chiliad/model/autoencoder/build.h"
#include "chiliad/model/diffusion.h"
#include "chiliad/model/language_model.h"
#include "chiliad/model/pixel_dit.h"
#include "chiliad/ops/embedding.h"
#include "chiliad/spec/tensor_shard.h"

namespace chiliad::model {

namespace {

void check_heads(const char* what, int64_t heads, int size) {
  if (heads % size == 0) return;
  throw InvalidInput("parallel.tp", fmt::format("expected a divisor of the model's {} {}, got {}. Choose one",
                                                heads, what, size));
}

std::unique_ptr<layers::Layer> make_layer(const spec::LayerDecl& decl, const spec::ModelOptions& options,
                                          layers::TensorParallel ranks) {
  if (decl.kind == spec::LayerKind::kExtension) return layers::make_extension_layer(decl, options, ranks);
  if (spec::is_language_model(options)) return make_language_layer(decl, options, ranks);
  if (spec::is_latent_diffusion(options)) return make_diffusion_layer(decl, spec::diffusion_options(options));
  return make_pixel_dit_layer(decl, options, ranks);
}

}  // namespace

std::vector<std::unique_ptr<layers::Layer>> build_model(const spec::ModelOptions& options,
                                                        layers::TensorParallel ranks) {
  if (spec::is_autoencoder(options))
    return autoencoder::build_autoencoder(spec::autoencoder_options(options));
  check_heads("attention heads", options.heads, ranks.size());
  if (options.kv_heads != 0) check_heads("key heads", options.kv_heads, ranks.size());
  std::vector<std::unique_ptr<layers::Layer>> built;
  for (const auto& whole : spec::make_layer_table(options).layers) {
    const spec::LayerDecl decl = spec::tensor_shard(whole, ranks.size());
    built.push_back(make_layer(decl, options, ranks));
  }
  return built;
}

void initialise(const spec::ParamDecl& param, uint64_t seed, at::Tensor out) {
  CHILIAD_CHECK(out.is_contiguous() && out.scalar_type() == at::kFloat);
  const std::span<float> values(out.mutable_data_ptr<float>(), static_cast<size_t>(out.numel()));
  Rng rng({seed, hash64(param.name), static_cast<uint64_t>(Draw::kInit)});
  switch (param.init) {
    case spec::Init::kZero:
      std::fill(values.begin(), values.end(), 0.0F);
      return;
    case spec::Init::kOne:
      std::fill(values.begin(), values.end(), 1.0F);
      return;
    case spec::Init::kNormal002:
      rng.fill_normal(values);
      for (float& value : values) value *= 0.02F;
      return;
    case spec::Init::kNormalUnit:
      rng.fill_normal(values);
      return;
    case spec::Init::kFanInUniform: {
      const auto fan_in = static_cast<double>(param.shape.count() / param.shape[0]);
      const auto limit = static_cast<float>(1.0 / std::sqrt(fan_in));
      for (float& value : values) value = (2.0F * rng.uniform() - 1.0F) * limit;
      return;
    }
    case spec::Init::kGridPositions: {
      const auto side = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(param.shape[1]))));
      out.copy_(ops::stretched_grid_positions(side, side, param.shape[2], param.init_base, 1.0).unsqueeze(0));
      return;
    }
    case spec::Init::kXavierUniform: {
      const int64_t inputs = param.shape.count() / param.shape[0];  // of a convolution, all of its square
      const auto fan = static_cast<double>(param.shape[0] + inputs);
      const auto limit = static_cast<float>(std::sqrt(6.0 / fan));
      for (float& value : values) value = (2.0F * rng.uniform() - 1.0F) * limit;
      return;
    }
  }
}

layers::Carry make_input(const spec::ModelOptions& options, const at::Tensor& patches, const at::Tensor& time,
                         const at::Tensor& tokens, int64_t rows, int64_t columns) {
  CHILIAD_CHECK(options.family == "pixel_dit");
  CHILIAD_CHECK_EQ(patches.size(1), rows * columns);
  layers::Carry carry;
  const at::Tensor mask = tokens.ne(0);  // [B, T]
  const at::Tensor weights = mask.to(at::kFloat);
  carry.set("tokens", tokens);
  carry.set("token_mask", mask);
  carry.set("token_weights", (weights / weights.sum(1, true)).unsqueeze(1));
  carry.set("text_positions", ops::line_positions(tokens.size(1), options.width));
  carry.set("patches", patches);
  carry.set("time", time);
  carry.set("image_positions", ops::grid_positions(rows, columns, options.width));
  return carry;
}

}  // namespace chiliad::model
