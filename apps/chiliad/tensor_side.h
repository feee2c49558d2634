#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "chiliad/base/dtype.h"
#include "chiliad/base/shape.h"
#include "chiliad/checkpoint/reader.h"
#include "chiliad/weights/weight_source.h"

namespace chiliad::cli {

/// One side of a comparison: tensors by name, of a checkpoint or of a Hugging Face folder.
class TensorSide {
 public:
  struct Tensor {
    std::string name;
    DType dtype = DType::kF32;
    Shape shape;
    std::optional<uint64_t> digest;  ///< equal where the values are
    std::string key;                 ///< of a folder, where it has another name there
    int64_t first = 0;               ///< of a folder, value of the stored tensor where it begins
  };
  virtual ~TensorSide() = default;

  [[nodiscard]] const std::vector<Tensor>& tensors() const { return tensors_; }
  /// Null where there is none.
  [[nodiscard]] const Tensor* find(const std::string& name) const;
  /// Values of a box of whole rows as fp32; only of types that hold them (is_comparable).
  [[nodiscard]] virtual std::vector<float> read(const Tensor& tensor, const Box& box) const = 0;
  /// Whether `read` can give the type's values.
  [[nodiscard]] virtual bool is_comparable(DType dtype) const = 0;

 protected:
  std::vector<Tensor> tensors_;
};

/// Tensors are called section/name. model_only: without moments and averages.
[[nodiscard]] std::unique_ptr<TensorSide> side_of(const checkpoint::Checkpoint& from, bool model_only);
/// Tensors have the names of the file.
[[nodiscard]] std::unique_ptr<TensorSide> side_of(const weights::WeightSource& from);
/// Tensors that are parameters of the checkpoint's model are called model/name, the others keep their keys.
[[nodiscard]] std::unique_ptr<TensorSide> side_of(const weights::WeightSource& from,
                                                  const checkpoint::Checkpoint& model_of);

}  // namespace chiliad::cli
