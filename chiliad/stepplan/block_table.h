#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "chiliad/index/sample_columns.h"
#include "chiliad/stepplan/usable.h"

namespace chiliad::stepplan {

/// Which items a plan is about.
enum class PlanPart {
  kTraining,
  kHeldOut,  ///< those of data.held_out, in the order of the index
};

/// Those samples whose keyed hash is at most a threshold: so many of them, whatever their order.
struct KeyedChoice {
  uint64_t key = 0;
  uint64_t hash = 0;    ///< the largest that is chosen
  int64_t sample = -1;  ///< the last one among those of that hash; -1 with hash 0: none at all
  [[nodiscard]] bool holds(uint64_t key_hash, int64_t number) const;
};

/// What a dry run over the columns finds: the items of each block, of one part, and what is left out. 4 bytes
/// a block.
struct BlockTable {
  std::vector<uint32_t> items;
  std::vector<int64_t> bucket_items;  ///< of each bucket; of each stage all items
  Coverage coverage;
  int64_t num_items = 0;
  KeyedChoice held_out;
  KeyedChoice limit;
  bool is_limited = false;  ///< `limit` leaves something out
  PlanPart part = PlanPart::kTraining;

  /// Whether a usable sample is an item of the part.
  [[nodiscard]] bool holds(uint64_t key_hash, int64_t sample) const;
};

struct BlockTableOptions {
  int64_t held_out = 0;
  int64_t limit = 0;
  PlanPart part = PlanPart::kTraining;
  size_t num_buckets = 1;
  int64_t first_sample = 0;  ///< of the columns
  /// Keeps the table of large data sets; empty: nowhere.
  std::filesystem::path folder{};
  std::function<void(int64_t done, int64_t total)> progress{};
};

/// Throws InvalidInput where more are to be held out than there are.
[[nodiscard]] BlockTable make_block_table(const index::SampleColumns& columns, const Usable& usable,
                                          const BlockTableOptions& options);

}  // namespace chiliad::stepplan
