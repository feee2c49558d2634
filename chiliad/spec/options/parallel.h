#pragma once

#include <cstdint>
#include <string>

namespace chiliad::spec {

/// Sections `parallel` and `precision`: the layout. Free to change on resume.
struct ParallelOptions {
  int64_t nproc = 1;               ///< data-parallel ranks (dp)
  int64_t threads = 1;             ///< intra-op threads a rank; part of the layout, for it changes CPU sums
  std::string compute = "fp32";    ///< precision.compute
  std::string transport = "auto";  ///< auto, shm (one machine) or gloo (TCP)
  double timeout_s = 60.0;         ///< deadline of every collective
  /// Rates of one rank, as `chiliad probe` measures them; used to pack equal work, and nothing else.
  double rate_linear = 1e11;      ///< FLOP/s of products with weights
  double rate_attention = 5e10;   ///< FLOP/s of products between activations
  double rate_elementwise = 5e9;  ///< activation values/s of everything else
  double rate_launch = 3.5e4;     ///< operators started/s
};

}  // namespace chiliad::spec
