#include "chiliad/stepplan/item.h"

#include <algorithm>
#include <numeric>

namespace chiliad::stepplan {

Digest Step::digest() const {
  Hasher hasher;
  hasher.add("step").add(step).add(epoch).add(window).add(static_cast<int64_t>(items.size()));
  for (const Item& item : items) {
    hasher.add(item.sample).add(static_cast<uint64_t>(item.position)).add(item.bucket).add(item.caption);
    hasher.add(static_cast<uint64_t>(item.num_tokens)).add(static_cast<double>(item.crop_x));
    hasher.add(static_cast<double>(item.crop_y)).add(item.flip ? 1 : 0).add(static_cast<double>(item.weight));
    hasher.add(item.draw_key);
    // Only where used: steps from before they existed keep their digest.
    if (item.num_tiles > 0) hasher.add("images").add(int64_t{item.image_tokens}).add(int64_t{item.num_tiles});
    if (item.pack >= 0) hasher.add("pack").add(item.pack);
  }
  return hasher.digest();
}

int64_t MicroBatch::num_tokens() const {
  int64_t sum = 0;
  for (const Item& item : items) sum += item.num_tokens;
  return sum;
}

double PackedStep::imbalance() const {
  const double sum = std::accumulate(rank_work.begin(), rank_work.end(), 0.0);
  if (sum <= 0.0) return 1.0;
  return *std::max_element(rank_work.begin(), rank_work.end()) * static_cast<double>(rank_work.size()) / sum;
}

}  // namespace chiliad::stepplan
