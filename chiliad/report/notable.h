#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "chiliad/index/index.h"

namespace chiliad::report {

/// A picture of an index: the first one of its sample.
struct PictureRow {
  int64_t sample = 0;
  uint32_t shard = 0;
  uint32_t part = 0;  ///< in the shard
  int64_t width = 0;  ///< 0 where it cannot be used
  int64_t height = 0;
  int64_t bytes = 0;
  uint64_t checksum = 0;
};

/// Samples that have something in common; the first one stands for them.
struct LikeSamples {
  std::vector<int64_t> samples;  ///< ascending, at most Notable::kMostNamed
  int64_t count = 0;             ///< all of them
};

/// Which pictures and samples of an index a person should look at. The same for the same index.
struct Notable {
  static constexpr size_t kMostNamed = 5;

  std::vector<PictureRow> drawn;     ///< by the hash of their keys, which is as good as at random
  std::vector<PictureRow> smallest;  ///< pixels
  std::vector<PictureRow> largest;
  std::vector<PictureRow> widest;  ///< width / height
  std::vector<PictureRow> tallest;
  std::vector<PictureRow> unusable;        ///< in the order of the index
  std::vector<LikeSamples> same_keys;      ///< the largest groups first
  std::vector<LikeSamples> same_pictures;  ///< byte by byte, as their checksums and lengths say
  int64_t num_same_keys = 0;               ///< groups, with those that are not listed
  int64_t num_same_pictures = 0;
};

/// Each list has at most `most` entries, `drawn` at most `most_drawn`; of pictures with the same bytes one.
/// Memory: 32 bytes a sample.
[[nodiscard]] Notable find_notable(const index::Index& index, size_t most_drawn, size_t most);

}  // namespace chiliad::report
