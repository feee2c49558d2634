#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "chiliad/layers/layer.h"
#include "chiliad/spec/layer_table.h"

namespace chiliad::model {

/// A micro-batch with which layers are tried, or their speed is measured.
struct TrialShape {
  int64_t items = 2;
  int64_t rows = 2;  ///< of image tokens
  int64_t columns = 3;
  int64_t text_tokens = 5;
  std::vector<int64_t> documents{3, 1, 5};  ///< their lengths, of a language model's pack
};

/// The carry that the first layer of any family takes, made of random numbers that depend on the shape alone:
/// pictures or latents, times, captions (of different lengths where the family takes them unpadded); or
/// packed documents with a target ignored. Floating-point entries have `type`.
[[nodiscard]] layers::Carry make_trial_input(const spec::ModelOptions& options, const TrialShape& shape,
                                             at::ScalarType type);
/// A micro-batch that the work model sees as `shape`, or nearly: image tokens as square as can be, documents
/// of one length.
[[nodiscard]] TrialShape trial_shape(const spec::BatchShape& shape);
/// The same micro-batch as the work model sees it.
[[nodiscard]] spec::BatchShape batch_shape(const spec::ModelOptions& options, const TrialShape& shape);

}  // namespace chiliad::model
