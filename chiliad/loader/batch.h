#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chiliad/base/host_array.h"
#include "chiliad/stepplan/item.h"

namespace chiliad::loader {

/// A deterministic finding about an item: it cannot be used, whoever tries.
struct Verdict {
  int64_t sample = 0;
  std::string reason;
};

/// One micro-batch, ready for the device.
struct Batch {
  stepplan::Bucket bucket;
  std::vector<stepplan::Item> items;  ///< a bad item keeps its place: zero pixels, weight 0
  HostArray pixels;                   ///< uint8 [B, H, W, 3]
  HostArray tokens;                   ///< int32 [B, T], padded with 0; T = longest caption here
  std::vector<int32_t> token_counts;  ///< [B]
};

/// What one rank consumes in one step, handed over in plan order.
struct RankStep {
  int64_t step = 0;
  int64_t epoch = 0;
  int64_t num_items = 0;  ///< planned global count (items of weight > 0 in the plan)
  Digest digest;          ///< of the step's items
  std::vector<Batch> slots;
  std::vector<Verdict> verdicts;  ///< found by this rank while loading this step
  double predicted_work = 0.0;
};

}  // namespace chiliad::loader
