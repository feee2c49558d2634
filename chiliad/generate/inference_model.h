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
  /// Reads whole parameters from whatever boxes the checkpoint has. overrides: "section.key=value" over its
  /// run file, for paths that moved. Throws CorruptData if a parameter is missing, InvalidInput for a model
  /// that makes no pictures.
  explicit InferenceModel(const checkpoint::Checkpoint& checkpoint,
                          const std::vector<std::string>& overrides = {});

  /// What the network puts out for its input (model::make_input, model::make_diffusion_input).
  [[nodiscard]] at::Tensor predict(layers::Carry carry) const;
  [[nodiscard]] const spec::RunFile& run() const { return run_; }
  [[nodiscard]] bool averaged() const { return averaged_; }

 private:
  spec::RunFile run_;
  bool averaged_ = false;
  std::vector<std::unique_ptr<layers::Layer>> layers_;
};

}  // namespace chiliad::generate
