#pragma once

#include <ATen/core/ScalarType.h>
#include <ATen/core/Tensor.h>

#include <filesystem>
#include <vector>

#include "chiliad/spec/layer_table.h"
#include "chiliad/weights/key_table.h"
#include "chiliad/weights/weight_source.h"

namespace chiliad::model {

/// Parameters of `table` out of a source, which outlives it, one at a time. Thread-safe.
class WeightReader {
 public:
  /// Throws InvalidInput with the whole report where a parameter is missing, has another shape or comes
  /// twice, and where the file has a tensor that `keys` does not explain.
  WeightReader(const spec::LayerTable& table, const weights::WeightSource& source,
               const weights::KeyTable& keys);
  /// In the type given and the parameter's shape. param: of the table.
  [[nodiscard]] at::Tensor read(const spec::ParamDecl& param, at::ScalarType type) const;

 private:
  const weights::WeightSource& source_;
  weights::KeyMatch match_;
};

/// The parameters of every layer, in the order of decl().params, for Layer::bind. Each tensor is read,
/// converted to `type` (a floating one) and reshaped by itself, so that memory is that of the result and one
/// tensor. Throws as WeightReader.
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
