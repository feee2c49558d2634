#pragma once

#include <ATen/core/ScalarType.h>
#include <ATen/core/Tensor.h>

#include <vector>

#include "chiliad/spec/layer_table.h"
#include "chiliad/weights/key_table.h"
#include "chiliad/weights/weight_source.h"

namespace chiliad::model {

/// The parameters of every layer of `table`, in the order of decl().params, for Layer::bind. Each tensor is
/// read, converted to `type` (a floating one) and reshaped by itself, so that memory is that of the result
/// and one tensor. Throws InvalidInput with the whole report where a parameter is missing, has another shape
/// or comes twice, and where the file has a tensor that `keys` does not explain.
[[nodiscard]] std::vector<std::vector<at::Tensor>> load_weights(const spec::LayerTable& table,
                                                                const weights::WeightSource& source,
                                                                const weights::KeyTable& keys,
                                                                at::ScalarType type = at::kFloat);

/// The same from a file or folder (WeightSource::open).
[[nodiscard]] std::vector<std::vector<at::Tensor>> load_weights(const spec::LayerTable& table,
                                                                const std::filesystem::path& path,
                                                                const weights::KeyTable& keys,
                                                                at::ScalarType type = at::kFloat);

}  // namespace chiliad::model
