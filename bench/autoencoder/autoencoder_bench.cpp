// Seconds and memory of one decode, and how far tiles are from the whole picture; random weights.
//   bench_autoencoder decode [SIDE [TILE [fp32|bf16]]]   Stable Diffusion's sizes, one thread
//   bench_autoencoder tiles                              a tiny model, tiles of several sides
#include <ATen/ATen.h>
#include <fmt/core.h>
#include <sys/resource.h>

#include <string>
#include <vector>

#include "chiliad/device/memory_meter.h"
#include "chiliad/device/tensor.h"
#include "chiliad/model/autoencoder.h"
#include "chiliad/model/build_model.h"
#include "chiliad/observe/cpu_time.h"
#include "chiliad/ops/keyed_noise.h"
#include "chiliad/spec/families/families.h"

namespace {

using namespace chiliad;

model::Autoencoder random_model(const spec::AutoencoderOptions& options, const std::string& precision,
                                uint64_t seed = 1) {
  std::vector<std::vector<at::Tensor>> weights;
  for (const auto& layer : spec::families::autoencoder_table(options).layers) {
    weights.emplace_back();
    for (const auto& param : layer.params) {
      weights.back().push_back(at::empty(param.shape.sizes(), at::kFloat));
      model::initialise(param, seed, weights.back().back());
    }
  }
  return {options, weights,
          precision == "bf16" ? model::AutoencoderPrecision::kBf16 : model::AutoencoderPrecision::kFp32};
}

at::Tensor random_latents(const spec::AutoencoderOptions& options, int64_t side) {
  const std::vector<uint64_t> keys = {1};
  return ops::keyed_noise(keys, Draw::kLatent, options.latent_channels * side * side)
      .view({1, options.latent_channels, side, side});
}

double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

void time_decode(int64_t side, int64_t tile, const std::string& precision) {
  const spec::AutoencoderOptions options;
  const auto model = random_model(options, precision);
  const at::Tensor latents = random_latents(options, side / options.factor());
  const double before = peak_mib();
  const device::MemoryMeter meter;
  const double start = observe::process_cpu_seconds();
  const at::Tensor pixels = model.decode(latents, {.tile = tile, .overlap = tile / 4});
  fmt::print(
      "decode {} tile {} {}: {:.2f} CPU-s, tensors at most {:.0f} MiB, process {:.0f} MiB before, {:.0f} MiB "
      "peak\n",
      side, tile, precision, observe::process_cpu_seconds() - start,
      static_cast<double>(meter.peak_bytes()) / 1048576.0, before, peak_mib());
}

/// For several draws of the weights, for each draw changes what the norms and the attention see.
void compare_tiles() {
  spec::AutoencoderOptions options;
  options.stage_channels = {8, 16, 16};
  options.layers_per_stage = 1;
  options.norm_groups = 4;
  const at::Tensor latents = random_latents(options, 192);
  for (const bool attention : {true, false}) {
    options.middle_attention = attention;
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      const auto model = random_model(options, "fp32", seed);
      const at::Tensor whole = model.decode(latents);
      const double largest = whole.abs().max().item<double>();
      for (const int64_t tile : {24, 48, 96}) {
        const int64_t side = tile * options.factor();
        const at::Tensor difference =
            (model.decode(latents, {.tile = side, .overlap = side / 4}) - whole).abs();
        const at::Tensor inside = difference.narrow(2, 0, side / 2).narrow(3, 0, side / 2);
        fmt::print(
            "attention {}, weights {}, tile {:2} of 192 latents: largest difference {:.3f} of the largest "
            "value, inside the first tile {:.3f}, root mean square {:.4f}\n",
            attention, seed, tile, difference.max().item<double>() / largest,
            inside.max().item<double>() / largest,
            difference.square().mean().sqrt().item<double>() / largest);
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  device::set_compute_threads(1);
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (!args.empty() && args[0] == "tiles") {
    compare_tiles();
  } else {
    time_decode(args.size() > 1 ? std::stoll(args[1]) : 512, args.size() > 2 ? std::stoll(args[2]) : 0,
                args.size() > 3 ? args[3] : "fp32");
  }
  return 0;
}
