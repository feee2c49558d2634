#include "chiliad/objective/flow.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "chiliad/base/error.h"
#include "chiliad/base/rng.h"
#include "chiliad/objective/loss_extension.h"
#include "chiliad/spec/caption_dropout.h"

namespace chiliad::objective {

float draw_time(const spec::ObjectiveOptions& options, uint64_t draw_key, int64_t image_tokens) {
  Rng rng({draw_key, static_cast<uint64_t>(Draw::kTime)});
  const TimeDensityOptions density = time_density(options);
  const bool normal = density.density == TimeDensity::kLogitNormal;
  const double draw = normal ? static_cast<double>(rng.normal()) : rng.uniform_double();
  return shifted_time(options, density_time(density, draw), image_tokens);
}

TimeDensityOptions time_density(const spec::ObjectiveOptions& options) {
  TimeDensityOptions density;
  if (options.times == "uniform") density.density = TimeDensity::kUniform;
  if (options.times == "mode") density.density = TimeDensity::kMode;
  density.logit_mean = options.times_mean;
  density.logit_std = options.times_std;
  density.mode_scale = options.mode_scale;
  return density;
}

double flow_shift(const spec::ObjectiveOptions& options, int64_t image_tokens) {
  return options.dynamic_shift ? std::exp(dynamic_mu({}, image_tokens)) : options.shift;
}

float shifted_time(const spec::ObjectiveOptions& options, double time, int64_t image_tokens) {
  return static_cast<float>(std::clamp(shift_time(time, flow_shift(options, image_tokens)), 1e-5, 1.0));
}

bool draw_caption_dropout(const spec::ObjectiveOptions& options, uint64_t draw_key) {
  return spec::drops_caption(options.caption_dropout, draw_key);
}

at::Tensor patchify(const at::Tensor& pixels, int64_t patch) {
  const int64_t rows = pixels.size(1) / patch;
  const int64_t columns = pixels.size(2) / patch;
  return pixels.to(at::kFloat)
      .div(127.5)
      .sub(1.0)
      .view({pixels.size(0), rows, patch, columns, patch, 3})
      .permute({0, 1, 3, 2, 4, 5})
      .reshape({pixels.size(0), rows * columns, patch * patch * 3});
}

at::Tensor unpatchify(const at::Tensor& patches, int64_t rows, int64_t columns, int64_t patch) {
  return patches.view({patches.size(0), rows, columns, patch, patch, 3})
      .permute({0, 1, 3, 2, 4, 5})
      .reshape({patches.size(0), rows * patch, columns * patch, 3});
}

at::Tensor draw_noise(std::span<const uint64_t> draw_keys, int64_t count) {
  at::Tensor noise = at::empty({static_cast<int64_t>(draw_keys.size()), count}, at::kFloat);
  float* out = noise.mutable_data_ptr<float>();
  for (const uint64_t key : draw_keys) {
    Rng rng({key, static_cast<uint64_t>(Draw::kNoise)});
    rng.fill_normal({out, static_cast<size_t>(count)});
    out += count;
  }
  return noise;
}

at::Tensor interpolate(const at::Tensor& x0, const at::Tensor& noise, const at::Tensor& t) {
  const at::Tensor time = t.view({-1, 1, 1});
  return (1.0 - time) * x0 + time * noise;
}

at::Tensor velocity_target(const at::Tensor& x0, const at::Tensor& noise) {
  return noise - x0;
}

at::Tensor item_losses(const spec::ObjectiveOptions& options, const at::Tensor& prediction,
                       const at::Tensor& x0, const at::Tensor& noise, const at::Tensor& t) {
  if (options.extension) return extension_losses(options, prediction, x0, noise, t);
  const bool predicts_sample = options.prediction == "sample";
  const bool velocity_space = options.loss == "velocity";
  const at::Tensor target = predicts_sample ? x0 : velocity_target(x0, noise);
  const at::Tensor errors = (prediction - target).square().mean({1, 2});  // [B]
  if (predicts_sample && velocity_space) return errors / t.clamp_min(options.min_time).square();
  if (!predicts_sample && !velocity_space) return errors * t.square();
  return errors;
}

at::Tensor to_velocity(const spec::ObjectiveOptions& options, const at::Tensor& prediction,
                       const at::Tensor& x_t, double t) {
  if (options.prediction != "sample") return prediction;
  return (x_t - prediction) /
         std::max(t, 1e-6);  // no floor: the last step of a sampler lands on the prediction
}

}  // namespace chiliad::objective
