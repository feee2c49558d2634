#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "chiliad/layers/layer.h"
#include "chiliad/spec/options/model.h"

namespace chiliad::model {

/// The layers of a model, in the order of its layer table, without parameters yet: those of one of the
/// tensor-parallel `ranks` that share it, with the shapes that it holds (spec::tensor_shard). The group
/// outlives them. Throws InvalidInput naming parallel.tp where the model cannot be cut so.
[[nodiscard]] std::vector<std::unique_ptr<layers::Layer>> build_model(const spec::ModelOptions& options,
                                                                      layers::TensorParallel ranks = {});

/// Fills `out` (fp32, the parameter's shape) with its initial values, a function of seed and name alone.
void initialise(const spec::ParamDecl& param, uint64_t seed, at::Tensor out);

/// The carry that the first layer of pixel_dit takes (language models: language_model.h).
/// patches: [B, N, 3 p p] fp32; time: [B] in 0..1; tokens: [B, T] int64, padded with 0; rows * columns = N.
[[nodiscard]] layers::Carry make_input(const spec::ModelOptions& options, const at::Tensor& patches,
                                       const at::Tensor& time, const at::Tensor& tokens, int64_t rows,
                                       int64_t columns);

}  // namespace chiliad::model
