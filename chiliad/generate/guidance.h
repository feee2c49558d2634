#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "chiliad/spec/options/evaluation.h"

namespace chiliad::generate {

/// What the scale of classifier-free guidance counts. c: with the condition, u: without.
enum class GuidanceForm {
  kFromUnconditional,  ///< u + s (c - u): 1 is no guidance (diffusers, DiT)
  kFromConditional,    ///< c + s (c - u): 0 is no guidance (Ho and Salimans 2022)
};

struct GuidanceOptions {
  double scale = 1.0;
  GuidanceForm form = GuidanceForm::kFromUnconditional;
  /// How many of the first channels are guided; the others are the conditional ones. 0: all. DiT's published
  /// scores guide 3 of its 4 latent channels.
  int64_t channels = 0;
};

/// As the run file asks for, of pictures that a run shows of itself.
[[nodiscard]] GuidanceOptions guidance_options(const spec::EvaluationOptions& evaluation);
/// The form of that name, from_unconditional or from_conditional.
[[nodiscard]] GuidanceForm guidance_form(const std::string& name);

/// Whether the network is to be asked without the condition at all.
[[nodiscard]] bool needs_unconditional(const GuidanceOptions& options);

/// with, without: [B, C, ...] of one shape.   returns: the same shape
[[nodiscard]] at::Tensor guide(const GuidanceOptions& options, const at::Tensor& with,
                               const at::Tensor& without);

/// The half of a network's channels that a sampler takes, where the other half is a learned variance.
/// model_output: [B, 2 C, ...].   returns: [B, C, ...]
[[nodiscard]] at::Tensor without_variance(const at::Tensor& model_output);

}  // namespace chiliad::generate
