#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "chiliad/dataset/stats.h"
#include "chiliad/index/index.h"

namespace chiliad::report {

struct StatsPageOptions {
  std::string title;
  std::string made_at;  ///< time, for people
  size_t max_drawn = 60;
  size_t max_notable = 8;  ///< of each kind of picture that stands out
  int32_t thumb_side = 160;
};

/// HTML of what an index holds: its numbers, histograms, some of its pictures, and those that stand out.
/// Reads the pictures that it shows; one that cannot be read is shown so. Throws InvalidInput where the data
/// lies in a store.
[[nodiscard]] std::string stats_page(const index::Index& index, const dataset::Stats& stats,
                                     const StatsPageOptions& options);

}  // namespace chiliad::report
