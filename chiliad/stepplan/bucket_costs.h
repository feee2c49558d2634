#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "chiliad/stepplan/pack.h"

namespace chiliad::stepplan {

/// An item and what a micro-batch costs of which it has the longest caption: fixed + unit * items.
struct Entry {
  const Item* item = nullptr;
  double fixed = 0.0;
  double unit = 0.0;
  [[nodiscard]] double cost(int64_t count) const { return fixed + unit * static_cast<double>(count); }
};

/// Entries of one bucket, longest caption first, then in the plan's order.
using Entries = std::vector<Entry>;

[[nodiscard]] inline bool longer_first(const Item& a, const Item& b) {
  return a.num_tokens != b.num_tokens ? a.num_tokens > b.num_tokens : a.position < b.position;
}

/// Asks a work model once for each bucket and caption length. Not thread-safe.
class BucketCosts {
 public:
  BucketCosts(const std::vector<Bucket>& buckets, const PackOptions& options)
      : buckets_(buckets), options_(options) {}

  [[nodiscard]] Entry entry(const Item& item);
  /// Those of a step by bucket; buckets without items are left out.
  [[nodiscard]] std::vector<Entries> by_bucket(const Step& step);
  /// Seconds of a micro-batch, all components.
  [[nodiscard]] double seconds(Bucket bucket, int64_t count, int64_t max_tokens) const;

 private:
  struct Cost {
    double fixed = 0.0;
    double unit = 0.0;
  };
  const std::vector<Bucket>& buckets_;
  const PackOptions& options_;
  std::unordered_map<uint64_t, Cost> known_;
};

/// Cost of a group in as few micro-batches of at most max_items as it needs, cut evenly.
[[nodiscard]] double group_cost(std::span<const Entry> group, int64_t max_items);

}  // namespace chiliad::stepplan
