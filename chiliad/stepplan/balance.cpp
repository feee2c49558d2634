#include "chiliad/stepplan/balance.h"

#include <algorithm>
#include <numeric>

#include "chiliad/base/error.h"
#include "chiliad/stepplan/pack_buckets.h"
#include "chiliad/stepplan/pack_rows.h"

namespace chiliad::stepplan {
namespace {

struct Point {
  double total_sum = 0.0, total_max = 0.0;
  Works sums{}, maxima{};

  void add(double total, const Works& works) {
    total_sum += total;
    total_max = std::max(total_max, total);
    for (size_t c = 0; c < works.size(); ++c) {
      sums[c] += works[c];
      maxima[c] = std::max(maxima[c], works[c]);
    }
  }
};

double over_mean(double maximum, double sum, double ranks) {
  return sum > 0.0 ? maximum * ranks / sum : 1.0;
}

Point step_point(const PackedStep& packed) {
  Point point;
  for (const auto& slots : packed.slots) {
    double total = 0.0;
    Works works{};
    for (const MicroBatch& slot : slots) {
      total += slot.work;
      for (size_t c = 0; c < works.size(); ++c) works[c] += slot.works[c];
    }
    point.add(total, works);
  }
  return point;
}

std::vector<Point> points_of(const PackedStep& packed, Sync sync) {
  if (sync == Sync::kStep) return {step_point(packed)};
  std::vector<Point> points(packed.slots[0].size());
  for (const auto& slots : packed.slots) {
    for (size_t s = 0; s < slots.size(); ++s) points[s].add(slots[s].work, slots[s].works);
  }
  return points;
}

/// What an item adds at least: its part of a full micro-batch, or of a row.
Works share_of(const Item& item, const std::vector<Bucket>& buckets, const PackOptions& options) {
  if (options.max_tokens > 0) return row_shares(item, buckets, options);
  const Bucket bucket = buckets[static_cast<size_t>(item.bucket)];
  Works works = options.component_work ? options.component_work(bucket, options.max_items, item.num_tokens)
                                       : Works{options.work(bucket, options.max_items, item.num_tokens)};
  for (double& work : works) work /= static_cast<double>(options.max_items);
  return works;
}

Step step_of(const PackedStep& packed) {
  Step step;
  for (const auto& slots : packed.slots) {
    for (const MicroBatch& slot : slots)
      step.items.insert(step.items.end(), slot.items.begin(), slot.items.end());
  }
  std::sort(step.items.begin(), step.items.end(),
            [](const Item& a, const Item& b) { return a.position < b.position; });
  return step;
}

}  // namespace

Balance balance_of(const PackedStep& packed, const PackOptions& options) {
  Balance balance;
  const auto num_components = static_cast<size_t>(options.num_components());
  balance.components.assign(num_components, 1.0);
  const auto ranks = static_cast<double>(packed.slots.size());
  double longest = 0.0;
  double sum = 0.0;
  for (const Point& point : points_of(packed, options.sync)) {
    balance.total = std::max(balance.total, over_mean(point.total_max, point.total_sum, ranks));
    longest += point.total_max;
    sum += point.total_sum;
    for (size_t c = 0; c < num_components; ++c)
      balance.components[c] =
          std::max(balance.components[c], over_mean(point.maxima[c], point.sums[c], ranks));
  }
  balance.time = over_mean(longest, sum, ranks);
  return balance;
}

double granularity_bound(std::vector<double> shares, size_t bins, double total) {
  if (shares.empty() || total <= 0.0) return 1.0;
  std::sort(shares.begin(), shares.end());
  double crowded = 0.0;
  for (size_t k = 1; k * bins < shares.size(); ++k) {
    const auto largest = shares.end() - static_cast<ptrdiff_t>(k * bins + 1);
    crowded = std::max(crowded, std::accumulate(largest, largest + static_cast<ptrdiff_t>(k + 1), 0.0));
  }
  const size_t most = (shares.size() + bins - 1) / bins;
  const double least = std::accumulate(shares.begin(), shares.begin() + static_cast<ptrdiff_t>(most), 0.0);
  return std::max(1.0, std::max({least, crowded, shares.back()}) * static_cast<double>(bins) / total);
}

Balance granularity_of(const PackedStep& packed, const std::vector<Bucket>& buckets,
                       const PackOptions& options) {
  const Step step = step_of(packed);
  const PackOptions own = options_for(options, step.items);
  Balance bound;
  const auto num_components = static_cast<size_t>(own.num_components());
  bound.components.assign(num_components, 1.0);
  if (step.items.empty()) return bound;
  std::vector<double> totals;
  std::vector<std::vector<double>> parts(num_components);
  int32_t last_pack = -1;
  for (const Item& item : step.items) {
    const Works works = share_of(item, buckets, own);
    const double total = std::accumulate(works.begin(), works.end(), 0.0);
    const bool joins = item.pack >= 0 && item.pack == last_pack;  // it cannot be divided from the one before
    last_pack = item.pack;
    joins ? totals.back() += total : (totals.push_back(total), totals.back());
    for (size_t c = 0; c < num_components; ++c)
      joins ? parts[c].back() += works[c] : (parts[c].push_back(works[c]), parts[c].back());
  }
  const size_t bins =
      packed.slots.size() * (own.sync == Sync::kSlot ? std::max<size_t>(1, packed.slots[0].size()) : 1);
  Works sums{};
  double sum = 0.0;
  for (const auto& slots : packed.slots) {
    for (const MicroBatch& slot : slots) {
      sum += slot.work;
      for (size_t c = 0; c < sums.size(); ++c) sums[c] += slot.works[c];
    }
  }
  bound.total = granularity_bound(std::move(totals), bins, sum);
  if (own.sync == Sync::kSlot && own.max_tokens == 0)
    bound.total =
        std::max(bound.total, least_largest(step, buckets, own, bins) * static_cast<double>(bins) / sum);
  for (size_t c = 0; c < num_components; ++c)
    bound.components[c] = granularity_bound(std::move(parts[c]), bins, sums[c]);
  bound.time = bound.total;
  return bound;
}

}  // namespace chiliad::stepplan
