#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "chiliad/checkpoint/reader.h"
#include "chiliad/layers/layer.h"
#include "chiliad/spec/run_file.h"

namespace chiliad::generate {

/// A model for inference, with the weights of a checkpoint: the moving average where there is one.
class InferenceModel {
 public:
  /// Reads whole parameters from whatever boxes the checkpoint has. Throws CorruptData if one is missing.
  explicit InferenceModel(const checkpoint::Checkpoint& checkpoint);

  /// patches: [B, N, 3 p p]; time: [B]; tokens: [B, T] int64; rows * columns = N.   returns: the prediction
  /// [B, N, 3 p p]
  [[nodiscard]] at::Tensor predict(const at::Tensor& patches, const at::Tensor& time,
                                   const at::Tensor& tokens, int64_t rows, int64_t columns) const;
  [[nodiscard]] const spec::RunFile& run() const { return run_; }
  [[nodiscard]] bool averaged() const { return averaged_; }

 private:
  spec::RunFile run_;
  bool averaged_ = false;
  std::vector<std::unique_ptr<layers::Layer>> layers_;
};

}  // namespace chiliad::generate
