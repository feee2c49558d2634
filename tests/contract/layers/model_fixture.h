#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "chiliad/layers/layer.h"
#include "chiliad/spec/options/model.h"

namespace chiliad::test {

/// A micro-batch with which layers are tried.
struct TrialShape {
  int64_t items = 2;
  int64_t rows = 2;
  int64_t columns = 3;
  int64_t text_tokens = 5;
  std::vector<int64_t> documents{3, 1, 5};  ///< their lengths, of a language model's pack
};

/// A whole model with random values in every parameter (zero-initialised ones too, so that nothing is
/// hidden), bound, all of them leaves that require gradients.
[[nodiscard]] std::vector<std::unique_ptr<layers::Layer>> make_random_model(const spec::ModelOptions& options,
                                                                            at::ScalarType type);

/// The carry before the first layer: random patches and times, captions of different lengths; or packed
/// documents with some targets ignored.
[[nodiscard]] layers::Carry make_trial_input(const spec::ModelOptions& options, const TrialShape& shape,
                                             at::ScalarType type);
/// The same micro-batch as the work model sees it.
[[nodiscard]] spec::BatchShape batch_shape(const spec::ModelOptions& options, const TrialShape& shape);

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
