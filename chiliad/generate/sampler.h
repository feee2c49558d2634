#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace chiliad::generate {

/// What a sampler carries from one step to the next; empty before the first. The caller owns it, so that
/// samplers are constant and one can run several batches.
struct SamplerState {
  at::Tensor previous_x0;            ///< multistep samplers: the sample that the last step predicted
  std::vector<uint64_t> noise_keys;  ///< one for each row of x; only samplers that add noise read them
};

/// Walks from noise to data. Step i takes x at times()[i], with what the network said there, to the next
/// time; after the last one x is the sample. Thread-safe: no state of its own.
class Sampler {
 public:
  virtual ~Sampler() = default;

  /// Times as the network takes them, from noise to data.   returns: [steps]
  [[nodiscard]] virtual const std::vector<double>& times() const = 0;
  /// model_output, x: [B, ...] of one shape and type; steps come in order, each once.
  [[nodiscard]] virtual at::Tensor step(const at::Tensor& model_output, const at::Tensor& x, int64_t i,
                                        SamplerState& state) const = 0;
};

/// How a sampler picks `steps` of the training times (Lin et al. 2023, table 2).
enum class TimeSpacing { kLeading, kTrailing, kLinspace };

/// Standard normal noise of step i, of like's shape and type: row b from keys[b] and i alone.
[[nodiscard]] at::Tensor step_noise(const std::vector<uint64_t>& keys, int64_t i, const at::Tensor& like);

}  // namespace chiliad::generate
