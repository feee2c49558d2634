#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "chiliad/layers/layer.h"
#include "chiliad/model/trial_input.h"
#include "chiliad/spec/options/model.h"

namespace chiliad::test {

using model::batch_shape;
using model::make_trial_input;
using model::TrialShape;

/// A whole model with random values in every parameter (zero-initialised ones too, so that nothing is
/// hidden), bound, all of them leaves that require gradients.
[[nodiscard]] std::vector<std::unique_ptr<layers::Layer>> make_random_model(const spec::ModelOptions& options,
                                                                            at::ScalarType type);

/// Small sizes, of every layer kind of pixel_dit.
[[nodiscard]] spec::ModelOptions tiny_model();
/// The same of a language model: grouped heads with a size of their own.
[[nodiscard]] spec::ModelOptions tiny_language_model(const std::string& family, bool tied);
/// The same of a diffusion transformer on latents, and of an autoencoder.
[[nodiscard]] spec::ModelOptions tiny_latent_model(const std::string& family);
[[nodiscard]] spec::ModelOptions tiny_autoencoder();
/// One of each family, and of each head.
[[nodiscard]] std::vector<spec::ModelOptions> tiny_models();
/// Name of one of them, for the name of a test.
[[nodiscard]] std::string model_name(const spec::ModelOptions& options);

}  // namespace chiliad::test
