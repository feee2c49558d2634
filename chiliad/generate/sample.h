#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "chiliad/base/host_array.h"
#include "chiliad/generate/guidance.h"
#include "chiliad/generate/picture_maker.h"

namespace chiliad::generate {

/// Which solver walks from noise to data.
enum class Solver {
  kAuto,   ///< Euler for flow matching, DPM-Solver++ for discrete diffusion
  kEuler,  ///< flow matching
  kDpm,    ///< DPM-Solver++ 2M
  kDdim,   ///< discrete diffusion
};

struct SamplerOptions {
  int steps = 30;
  GuidanceOptions guidance{.scale = 2.0};
  /// What a network with a guidance input is told; nothing: what it was told in training.
  std::optional<double> embedded_guidance = {};
  int max_batch = 32;
  Solver solver = Solver::kAuto;
};

/// Makes pictures, uint8 [H, W, 3] each, in the order of the requests; a picture depends on its request
/// alone, up to rounding by the batch it was in. Requests of equal size run together. Throws InvalidInput for
/// sides that are no multiples of the model's, for a solver that its objective does not have, and for
/// guidance of channels that it does not have.
[[nodiscard]] std::vector<HostArray> sample(const PictureMaker& maker, const std::vector<Request>& requests,
                                            const SamplerOptions& options,
                                            const std::function<void(int64_t, int64_t)>& progress);

}  // namespace chiliad::generate
