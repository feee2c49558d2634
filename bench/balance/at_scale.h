#pragma once

#include <cstdint>

namespace chiliad::bench {

/// Balance of 8 to 1,024 ranks over a made set of `count` samples: pictures in buckets, pictures in packs,
/// documents with pictures in packs. Prints JSON lines. returns: whether all targets were met.
bool bench_at_scale(int64_t count);

}  // namespace chiliad::bench
