#pragma once

#include <ATen/core/ScalarType.h>

#include <cstdint>
#include <string>

namespace chiliad::bench {

struct MixedOptions {
  std::string family = "pixart";
  at::ScalarType type = at::kFloat;
  int threads = 1;
  int rounds = 3;
  int64_t depth = 4;   ///< blocks
  int64_t side = 256;  ///< pictures have at most side * side pixels
};

/// Training steps on the same 64 pictures of mixed shapes, padded to the largest, in buckets and packed;
/// taken in turns. Prints a line of JSON for each comparison: CPU seconds of padding over those of the other,
/// by real pixels, which are the same.
void time_mixed(const MixedOptions& options);

}  // namespace chiliad::bench
