#include "chiliad/model/autoencoder.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <fmt/ranges.h>

#include "chiliad/base/error.h"
#include "chiliad/model/autoencoder/build.h"
#include "chiliad/model/autoencoder/tiles.h"
#include "chiliad/model/load_weights.h"
#include "chiliad/ops/keyed_noise.h"
#include "chiliad/spec/families/families.h"
#include "chiliad/weights/configs/autoencoder.h"
#include "chiliad/weights/key_tables/autoencoder.h"

namespace chiliad::model {
namespace {

using autoencoder::run_tiled;

/// No graph, and no precision but the declared one.
struct InferenceScope {
  at::NoGradGuard no_grad;
  c10::impl::ExcludeDispatchKeyGuard no_autocast{c10::autocast_dispatch_keyset};
};

at::ScalarType scalar_type(AutoencoderPrecision precision) {
  return precision == AutoencoderPrecision::kFp32 ? at::kFloat : at::kBFloat16;
}

void check_finite(const char* place, const at::Tensor& values) {
  if (at::isfinite(values.sum()).item<bool>()) return;  // one pass; a sum can also overflow
  const int64_t bad = values.numel() - at::isfinite(values).sum().item<int64_t>();
  if (bad == 0) return;
  throw InvalidInput(place,
                     fmt::format("values: expected finite ones, got {} of {} that are NaN or infinite. "
                                 "Check the input and the weights, or compute in fp32",
                                 bad, values.numel()));
}

void check_channels(const char* place, const at::Tensor& x, int64_t channels) {
  if (x.dim() == 4 && x.size(1) == channels && x.numel() > 0 && x.is_floating_point()) return;
  throw InvalidInput(place,
                     fmt::format("shape: expected [items, {}, height, width] of floating values, got [{}]. "
                                 "Give one picture or more, channels first",
                                 channels, fmt::join(x.sizes().vec(), ", ")));
}

void check_side(const char* what, int64_t size, int64_t factor) {
  if (size % factor == 0) return;
  const int64_t below = size / factor * factor;
  const std::string nearest =
      below == 0 ? fmt::format("{}", factor) : fmt::format("{} or {}", below, below + factor);
  throw InvalidInput("autoencoder.pixels", fmt::format("{}: expected a multiple of {}, got {}. Use {}", what,
                                                       factor, size, nearest));
}

}  // namespace

void check_tiling(const AutoencoderTiling& tiling, int64_t factor) {
  const auto [tile, overlap] = tiling;
  if (tile == 0 && overlap == 0) return;
  if (tile > 0 && overlap >= 0 && overlap < tile && tile % factor == 0 && overlap % factor == 0) return;
  throw InvalidInput(
      "encoders.tile",
      fmt::format("tile and tile_overlap: expected multiples of {}, 0 <= overlap < tile, got {} and {}. "
                  "Usual are 512 and 128",
                  factor, tile, overlap));
}

at::Tensor sample_latents(const LatentDistribution& latents, std::span<const uint64_t> draw_keys) {
  const int64_t items = latents.mean.size(0);
  CHILIAD_CHECK_EQ(static_cast<int64_t>(draw_keys.size()), items);
  if (items == 0) return latents.mean;
  const at::Tensor noise =
      ops::keyed_noise(draw_keys, Draw::kLatent, latents.mean.numel() / items).view(latents.mean.sizes());
  return latents.mean + (latents.logvar * 0.5).exp() * noise.to(latents.mean.device());
}

at::Tensor to_model_space(const spec::AutoencoderOptions& options, const at::Tensor& latents) {
  return (latents - options.shift_factor) * options.scaling_factor;
}

at::Tensor from_model_space(const spec::AutoencoderOptions& options, const at::Tensor& latents) {
  return latents / options.scaling_factor + options.shift_factor;
}

Autoencoder Autoencoder::load(const std::filesystem::path& folder, AutoencoderPrecision precision) {
  const auto options = weights::read_autoencoder_config(folder / "config.json");
  const auto table = spec::families::autoencoder_table(options);
  return {options, load_weights(table, folder, weights::autoencoder_keys(), scalar_type(precision)),
          precision};
}

Autoencoder::Autoencoder(const spec::AutoencoderOptions& options,
                         const std::vector<std::vector<at::Tensor>>& weights, AutoencoderPrecision precision)
    : options_(options) {
  auto layers = autoencoder::build_autoencoder(options);
  CHILIAD_CHECK_EQ(weights.size(), layers.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    std::vector<at::Tensor> params;
    for (const auto& weight : weights[i]) params.push_back(weight.detach().to(scalar_type(precision)));
    layers[i]->bind(std::move(params));
    auto& half = i < autoencoder::num_encoder_layers(options) ? encoder_ : decoder_;
    half.push_back(std::move(layers[i]));
  }
}

at::Tensor Autoencoder::encode_part(const at::Tensor& pixels) const {
  layers::Carry carry;
  carry.set("pixels", pixels);
  for (const auto& layer : encoder_) layer->forward(carry);
  return at::cat({carry.get("mean"), carry.get("logvar")}, 1);
}

at::Tensor Autoencoder::decode_part(const at::Tensor& latents) const {
  layers::Carry carry;
  carry.set("latents", latents);
  for (const auto& layer : decoder_) layer->forward(carry);
  return carry.get("reconstruction");
}

LatentDistribution Autoencoder::encode(const at::Tensor& pixels, const AutoencoderTiling& tiling) const {
  const InferenceScope scope;
  const int64_t factor = options_.factor();
  check_channels("autoencoder.pixels", pixels, options_.in_channels);
  check_side("height", pixels.size(2), factor);
  check_side("width", pixels.size(3), factor);
  check_tiling(tiling, factor);
  check_finite("autoencoder.pixels", pixels);
  const auto part = [this](const at::Tensor& x) { return encode_part(x); };
  const at::Tensor moments =
      tiling.tile == 0 ? part(pixels)
                       : run_tiled({tiling.tile / factor, tiling.overlap / factor, factor, 1}, pixels, part);
  check_finite("autoencoder.latents", moments);
  const auto parts = moments.chunk(2, 1);
  return {parts[0].contiguous(), parts[1].contiguous()};
}

at::Tensor Autoencoder::decode(const at::Tensor& latents, const AutoencoderTiling& tiling) const {
  const InferenceScope scope;
  const int64_t factor = options_.factor();
  check_channels("autoencoder.latents", latents, options_.latent_channels);
  check_tiling(tiling, factor);
  check_finite("autoencoder.latents", latents);
  const auto part = [this](const at::Tensor& x) { return decode_part(x); };
  const at::Tensor pixels =
      tiling.tile == 0 ? part(latents)
                       : run_tiled({tiling.tile / factor, tiling.overlap / factor, 1, factor}, latents, part);
  check_finite("autoencoder.pixels", pixels);
  return pixels;
}

}  // namespace chiliad::model
