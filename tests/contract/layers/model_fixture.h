#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
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
};

/// A whole model with random values in every parameter (zero-initialised ones too, so that nothing is
/// hidden), bound, all of them leaves that require gradients.
[[nodiscard]] std::vector<std::unique_ptr<layers::Layer>> make_random_model(const spec::ModelOptions& options,
                                                                            at::ScalarType type);

/// The carry before the first layer: random patches and times, captions of different lengths.
[[nodiscard]] layers::Carry make_trial_input(const spec::ModelOptions& options, const TrialShape& shape,
                                             at::ScalarType type);

/// Small sizes, of every layer kind.
[[nodiscard]] spec::ModelOptions tiny_model();

}  // namespace chiliad::test
