#include "chiliad/stepplan/bucket_costs.h"

#include <algorithm>
#include <numeric>

#include "chiliad/base/error.h"

namespace chiliad::stepplan {

double BucketCosts::seconds(Bucket bucket, int64_t count, int64_t max_tokens) const {
  if (!options_.component_work) return options_.work(bucket, count, max_tokens);
  const Works works = options_.component_work(bucket, count, max_tokens);
  return std::accumulate(works.begin(), works.end(), 0.0);
}

Entry BucketCosts::entry(const Item& item) {
  const uint64_t key = uint64_t{item.num_tokens} << 32 | static_cast<uint32_t>(item.bucket);
  const auto [at, is_new] = known_.try_emplace(key);
  if (is_new) {
    const Bucket bucket = buckets_.at(static_cast<size_t>(item.bucket));
    const double one = seconds(bucket, 1, item.num_tokens);
    at->second.unit = seconds(bucket, 2, item.num_tokens) - one;
    at->second.fixed = one - at->second.unit;
  }
  return {&item, at->second.fixed, at->second.unit};
}

std::vector<Entries> BucketCosts::by_bucket(const Step& step) {
  std::vector<Entries> all(buckets_.size());
  for (const Item& item : step.items) all.at(static_cast<size_t>(item.bucket)).push_back(entry(item));
  std::erase_if(all, [](const Entries& entries) { return entries.empty(); });
  for (Entries& entries : all) {
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return longer_first(*a.item, *b.item); });
  }
  return all;
}

double group_cost(std::span<const Entry> group, int64_t max_items) {
  const auto count = static_cast<int64_t>(group.size());
  if (count == 0) return 0.0;
  if (count <= max_items) return group[0].cost(count);
  const int64_t chunks = (count + max_items - 1) / max_items;
  double work = 0.0;
  for (int64_t c = 0; c < chunks; ++c) {
    const int64_t first = c * count / chunks;
    work += group[static_cast<size_t>(first)].cost((c + 1) * count / chunks - first);
  }
  return work;
}

}  // namespace chiliad::stepplan
