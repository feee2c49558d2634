#pragma once

#include <cstdint>
#include <string>

namespace chiliad::bench {

/// Balance of 8 to 1,024 ranks over a made set of `count` samples: pictures in buckets, pictures in packs,
/// documents with pictures in packs. Prints JSON lines. `only`: cases whose name holds it, at one number of
/// ranks where that is not 0. returns: whether all targets were met.
bool bench_at_scale(int64_t count, const std::string& only = "", int ranks = 0);

}  // namespace chiliad::bench
