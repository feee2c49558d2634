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
};

}  // namespace chiliad::spec
