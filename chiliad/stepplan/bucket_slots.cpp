// How a step of pictures is cut where ranks wait in each slot:
// 1. The least number of slots S for which the ranks' micro-batches of one bucket suffice.
// 2. The least limit T for which at most ranks * S micro-batches have no more work: found by bisection.
// 3. Each bucket is cut into as many micro-batches as T asks for, with the least limit of its own.
// 4. Micro-batches of like work share a slot; the rank that has least so far gets the largest.
#include "chiliad/stepplan/bucket_slots.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/stepplan/pack_buckets.h"

namespace chiliad::stepplan {
namespace {

constexpr double kAccuracy = 1e-4;

/// Items of the micro-batch that begins with `first` and has at most `limit` work; one at least.
size_t most_items(const Entry& first, double limit, int64_t max_items) {
  const double exact = first.unit > 0.0 ? (limit - first.fixed) / first.unit : static_cast<double>(max_items);
  const double whole = std::floor(exact + 1e-9);
  return static_cast<size_t>(std::clamp(whole, 1.0, static_cast<double>(max_items)));
}

/// Micro-batches of at most `limit` each that a bucket needs; `ends`: where they end, unless null.
size_t chunks_of(const Entries& entries, double limit, int64_t max_items, std::vector<size_t>* ends) {
  size_t count = 0;
  for (size_t at = 0; at < entries.size(); ++count) {
    at = std::min(entries.size(), at + most_items(entries[at], limit, max_items));
    if (ends != nullptr) ends->push_back(at);
  }
  return count;
}

/// The least limit, within its accuracy, for which `enough(limit)`; `high` is one.
template <class Enough>
double least_limit(double low, double high, const Enough& enough) {
  while (high - low > kAccuracy * high) {
    const double middle = (low + high) / 2.0;
    (enough(middle) ? high : low) = middle;
  }
  return high;
}

struct Cut {
  std::vector<Entries> buckets;
  double low = 0.0;   // no limit is less
  double high = 0.0;  // enough for any number of micro-batches that max_items allows
};

Cut cut_of(const Step& step, const std::vector<Bucket>& buckets, const PackOptions& options) {
  BucketCosts costs(buckets, options);
  Cut cut;
  cut.buckets = costs.by_bucket(step);
  for (const Entries& entries : cut.buckets) {
    for (const Entry& entry : entries) {
      cut.low = std::max(cut.low, entry.cost(1));
      cut.high = std::max(cut.high, entry.cost(options.max_items));
    }
  }
  return cut;
}

size_t fewest(const Cut& cut, const PackOptions& options) {
  size_t count = 0;
  for (const Entries& entries : cut.buckets)
    count += chunks_of(entries, cut.high, options.max_items, nullptr);
  return count;
}

double limit_for(const Cut& cut, const PackOptions& options, size_t count) {
  return least_limit(cut.low * (1.0 - kAccuracy), cut.high, [&](double limit) {
    size_t needed = 0;
    for (const Entries& entries : cut.buckets)
      needed += chunks_of(entries, limit, options.max_items, nullptr);
    return needed <= count;
  });
}

std::vector<MicroBatch> cut_bucket(const Entries& entries, double limit, const std::vector<Bucket>& buckets,
                                   const PackOptions& options) {
  const size_t count = chunks_of(entries, limit, options.max_items, nullptr);
  const double even = least_limit(0.0, limit, [&](double lower) {
    return lower >= entries[0].cost(1) && chunks_of(entries, lower, options.max_items, nullptr) <= count;
  });
  std::vector<size_t> ends;
  (void)chunks_of(entries, even, options.max_items, &ends);
  std::vector<MicroBatch> slots;
  size_t first = 0;
  for (const size_t end : ends) {
    slots.push_back(finish_slot(std::span(entries).subspan(first, end - first), buckets, options));
    first = end;
  }
  return slots;
}

}  // namespace

MicroBatch finish_slot(std::span<const Entry> entries, const std::vector<Bucket>& buckets,
                       const PackOptions& options) {
  MicroBatch slot;
  slot.bucket = entries[0].item->bucket;
  slot.items.reserve(entries.size());
  for (const Entry& entry : entries) slot.items.push_back(*entry.item);
  const Bucket bucket = buckets[static_cast<size_t>(slot.bucket)];
  const auto count = static_cast<int64_t>(entries.size());
  const int64_t longest = slot.items[0].num_tokens;
  slot.works = options.component_work ? options.component_work(bucket, count, longest)
                                      : Works{options.work(bucket, count, longest)};
  slot.work = std::accumulate(slot.works.begin(), slot.works.end(), 0.0);
  std::sort(slot.items.begin(), slot.items.end(),
            [](const Item& x, const Item& y) { return x.position < y.position; });
  return slot;
}

double least_largest(const Step& step, const std::vector<Bucket>& buckets, const PackOptions& options,
                     size_t count) {
  const Cut cut = cut_of(step, buckets, options);
  return limit_for(cut, options, std::max(count, fewest(cut, options)));
}

PackedStep pack_slots(const Step& step, const std::vector<Bucket>& buckets, const PackOptions& options) {
  const auto num_ranks = static_cast<size_t>(options.num_ranks);
  PackedStep packed;
  packed.slots.resize(num_ranks);
  packed.rank_work.resize(num_ranks);
  const Cut cut = cut_of(step, buckets, options);
  const size_t num_slots = (fewest(cut, options) + num_ranks - 1) / num_ranks;
  const double limit = limit_for(cut, options, num_slots * num_ranks);
  std::vector<MicroBatch> all;
  for (const Entries& entries : cut.buckets) {
    for (MicroBatch& slot : cut_bucket(entries, limit, buckets, options)) all.push_back(std::move(slot));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const MicroBatch& a, const MicroBatch& b) { return a.work > b.work; });
  all.resize(num_slots * num_ranks);
  std::vector<std::pair<double, uint32_t>> ranks(num_ranks);
  for (size_t slot = 0; slot < num_slots; ++slot) {
    for (uint32_t rank = 0; rank < num_ranks; ++rank) ranks[rank] = {packed.rank_work[rank], rank};
    std::sort(ranks.begin(), ranks.end());
    for (size_t i = 0; i < num_ranks; ++i) {
      MicroBatch& batch = all[slot * num_ranks + i];
      packed.rank_work[ranks[i].second] += batch.work;
      packed.slots[ranks[i].second].push_back(std::move(batch));
    }
  }
  return packed;
}

}  // namespace chiliad::stepplan
