#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace chiliad::spec {

struct ObjectiveUse;

/// Section `objective`. flow: flow matching, x_t = (1 - t) x0 + t noise, velocity = noise - x0. ddpm:
/// discrete diffusion, x_t = a x0 + s noise, velocity = a noise - s x0. reconstruction: of autoencoders.
struct ObjectiveOptions {
  std::string kind = "flow";
  std::string prediction = "sample";  ///< what the network puts out: sample (x0), velocity, or noise (ddpm)

  // flow
  std::string loss = "velocity";       ///< space of the squared error: velocity or sample
  double min_time = 0.1;               ///< divisor floor when a predicted sample becomes a velocity
  std::string times = "logit_normal";  ///< logit_normal, uniform or mode
  double times_mean = 0.0;
  double times_std = 1.0;
  double mode_scale = 1.29;
  double shift = 1.0;          ///< static shift of the times
  bool dynamic_shift = false;  ///< by the number of image tokens (objective::DynamicShift)

  // ddpm
  std::string noise_schedule = "linear";  ///< linear, scaled_linear or cosine
  double beta_start = 1e-4;
  double beta_end = 0.02;
  int64_t train_steps = 1000;
  bool zero_terminal_snr = false;
  double min_snr_gamma = 0.0;  ///< 0: every time weighs the same

  // reconstruction
  std::string error = "absolute";  ///< absolute or squared
  double kl_weight = 1e-6;
  std::string perceptual = {};     ///< a TorchScript file of a feature network; empty: no such loss
  double perceptual_weight = 1.0;  ///< of the features' mean squared difference

  double caption_dropout = 0.1;    ///< or classes'
  double embedded_guidance = 1.0;  ///< the scale that a network with a guidance input is told in training

  /// A loss of an extension, in the place of `kind`'s (spec/extension.h). Shared by all copies of the
  /// options, unchanged once the run file is read.
  std::shared_ptr<ObjectiveUse> extension;
};

}  // namespace chiliad::spec
