#pragma once

#include "chiliad/base/clock.h"

namespace chiliad::observe {

/// Kind of multiply-add that a peak is of.
enum class FmaType { kF32, kBf16 };

struct PeakRequest {
  FmaType type = FmaType::kF32;
  int num_threads = 1;                                 ///< at once
  Nanoseconds window = std::chrono::milliseconds(10);  ///< the best of `num_windows` such times counts
  int num_windows = 5;
};

/// FLOP/s (1 multiply-add = 2 FLOPs) of this process's cores as they are now: chains of multiply-adds that
/// stay in registers, of the widest instructions that the processor has. Ranks that share a machine call it
/// at the same time, to see what they have beside each other. bf16 can also be computed in fp32, so its peak
/// is that of the faster; 0 where the fastest instructions are not known here (AMX tiles).
[[nodiscard]] double measure_fma_peak(const PeakRequest& request);

}  // namespace chiliad::observe
