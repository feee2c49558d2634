// How a step is cut:
// 1. Items are grouped by bucket and, inside, sorted by tokens; the row of groups is cut into one run per
//    rank, so that the most work of a rank is least. So at most one bucket a rank is split.
// 2. While it helps, the rank with the most work gives an item to another one or swaps one with it; costs are
//    those of the micro-batches that would come out, with the overhead of each and its padding.
// 3. Each rank's items of one bucket become micro-batches of at most max_items, cut evenly; ranks get equal
//    slots.
// Steps of few items take the best of some rows that begin with different buckets.
#include "chiliad/stepplan/pack.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/planted.h"
#include "chiliad/stepplan/pack_rows.h"

namespace chiliad::stepplan {
namespace {

constexpr int kMaxPartners = 8;
constexpr int kRoundsPerRank = 12;
constexpr size_t kStarts = 3;
constexpr size_t kSmallStep = 256;
constexpr double kGoodEnough = 1.002;
constexpr double kDealAccuracy = 0.002;

// Items of one bucket on one rank, by tokens (longest first), then position.
using Group = std::vector<const Item*>;

bool longer_first(const Item* a, const Item* b) {
  return a->num_tokens != b->num_tokens ? a->num_tokens > b->num_tokens : a->position < b->position;
}

struct Change {
  int giver = -1, taker = -1;
  const Item* given = nullptr;
  const Item* taken = nullptr;  // null: a move
  double worst = 0.0;           // of the two ranks, after it
  double sum = 0.0;
};

class Balancer {
 public:
  Balancer(const std::vector<Bucket>& buckets, const PackOptions& options)
      : buckets_(buckets),
        options_(options),
        groups_(static_cast<size_t>(options.num_ranks), std::vector<Group>(buckets.size())),
        costs_(groups_.size(), std::vector<double>(buckets.size())),
        load_(groups_.size()) {}

  /// `first_bucket`: where the row of buckets begins.
  void deal(const Step& step, size_t first_bucket);
  [[nodiscard]] double worst_load() const { return *std::max_element(load_.begin(), load_.end()); }
  void improve();
  [[nodiscard]] PackedStep finish() const;

 private:
  // Work of `group` without `out` and with `in` (either may be null).
  [[nodiscard]] double cost(size_t bucket, const Group& group, const Item* out, const Item* in) const;
  [[nodiscard]] double chunk_cost(size_t bucket, std::span<const Item* const> group) const;
  [[nodiscard]] bool fill(const Group& row, double limit, std::vector<size_t>& ends) const;
  // Load of `rank` without `out` and with `in`.
  [[nodiscard]] double load_after(size_t rank, const Item* out, const Item* in) const;
  [[nodiscard]] std::vector<const Item*> candidates(size_t rank) const;
  void try_pair(size_t giver, size_t taker, Change& best) const;
  void put(size_t rank, const Item* item);
  void take(size_t rank, const Item* item);

  const std::vector<Bucket>& buckets_;
  const PackOptions& options_;
  std::vector<std::vector<Group>> groups_;  // [rank][bucket]
  std::vector<std::vector<double>> costs_;
  std::vector<double> load_;
};

double Balancer::chunk_cost(size_t bucket, std::span<const Item* const> group) const {
  const auto count = static_cast<int64_t>(group.size());
  const int64_t chunks = (count + options_.max_items - 1) / options_.max_items;
  double work = 0.0;
  for (int64_t c = 0; c < chunks; ++c) {
    const int64_t first = c * count / chunks;
    work += options_.work(buckets_[bucket], (c + 1) * count / chunks - first,
                          group[static_cast<size_t>(first)]->num_tokens);
  }
  return work;
}

double Balancer::cost(size_t bucket, const Group& group, const Item* out, const Item* in) const {
  const auto count = static_cast<int64_t>(group.size()) - (out != nullptr ? 1 : 0) + (in != nullptr ? 1 : 0);
  if (count == 0) return 0.0;
  if (count <= options_.max_items) {
    int64_t longest = in != nullptr ? in->num_tokens : 0;
    const size_t first = !group.empty() && group[0] == out ? 1 : 0;
    if (first < group.size()) longest = std::max<int64_t>(longest, group[first]->num_tokens);
    return options_.work(buckets_[bucket], count, longest);
  }
  Group changed;
  changed.reserve(group.size() + 1);
  for (const Item* item : group) {
    if (item != out) changed.push_back(item);
  }
  if (in != nullptr) changed.insert(std::upper_bound(changed.begin(), changed.end(), in, longer_first), in);
  return chunk_cost(bucket, changed);
}

double Balancer::load_after(size_t rank, const Item* out, const Item* in) const {
  const auto change = [&](const Item* item, const Item* o, const Item* i) {
    const auto bucket = static_cast<size_t>(item->bucket);
    return cost(bucket, groups_[rank][bucket], o, i) - costs_[rank][bucket];
  };
  if (out != nullptr && in != nullptr && out->bucket == in->bucket) return load_[rank] + change(out, out, in);
  double load = load_[rank];
  if (out != nullptr) load += change(out, out, nullptr);
  if (in != nullptr) load += change(in, nullptr, in);
  return load;
}

void Balancer::put(size_t rank, const Item* item) {
  const auto bucket = static_cast<size_t>(item->bucket);
  Group& group = groups_[rank][bucket];
  group.insert(std::upper_bound(group.begin(), group.end(), item, longer_first), item);
  load_[rank] -= costs_[rank][bucket];
  load_[rank] += costs_[rank][bucket] = chunk_cost(bucket, group);
}

void Balancer::take(size_t rank, const Item* item) {
  const auto bucket = static_cast<size_t>(item->bucket);
  Group& group = groups_[rank][bucket];
  group.erase(std::find(group.begin(), group.end(), item));
  load_[rank] -= costs_[rank][bucket];
  load_[rank] += costs_[rank][bucket] = group.empty() ? 0.0 : chunk_cost(bucket, group);
}

// Fills ranks along `row`, each up to `limit`; `ends` are the borders. Returns whether the ranks suffice.
bool Balancer::fill(const Group& row, double limit, std::vector<size_t>& ends) const {
  ends.clear();
  size_t rank_start = 0;
  size_t group_start = 0;
  double closed = 0.0;   // work of the rank's groups before the current one
  double current = 0.0;  // of the current group
  for (size_t i = 0; i < row.size(); ++i) {
    const auto bucket = static_cast<size_t>(row[i]->bucket);
    if (i > 0 && row[i]->bucket != row[i - 1]->bucket) {
      closed += current;
      group_start = i;
    }
    current = chunk_cost(bucket, std::span(row).subspan(group_start, i + 1 - group_start));
    if (closed + current <= limit || i == rank_start) continue;
    ends.push_back(i);
    if (ends.size() == load_.size()) return false;
    rank_start = group_start = i;
    closed = 0.0;
    current = chunk_cost(bucket, std::span(row).subspan(i, 1));
  }
  ends.push_back(row.size());
  return true;
}

void Balancer::deal(const Step& step, size_t first_bucket) {
  const auto turned = [&](const Item* item) {
    return (static_cast<size_t>(item->bucket) + buckets_.size() - first_bucket) % buckets_.size();
  };
  Group row;
  for (const Item& item : step.items) row.push_back(&item);
  std::sort(row.begin(), row.end(), [&](const Item* a, const Item* b) {
    return a->bucket != b->bucket ? turned(a) < turned(b) : longer_first(a, b);
  });
  double high = 0.0;
  for (const Item* item : row) {
    high += options_.work(buckets_.at(static_cast<size_t>(item->bucket)), 1, item->num_tokens);
  }
  double low = 0.0;
  std::vector<size_t> ends;
  while (!fill(row, high, ends)) {  // padding may cost more than keeping items apart
    low = high;
    high *= 2.0;
    CHILIAD_CHECK(high > 0.0 && std::isfinite(high), "the work model gives {}", high);
  }
  while (high - low > kDealAccuracy * high) {
    const double middle = (low + high) / 2.0;
    (fill(row, middle, ends) ? high : low) = middle;
  }
  CHILIAD_CHECK(fill(row, high, ends));
  size_t at = 0;
  for (size_t r = 0; r < ends.size(); ++r) {
    for (; at < ends[r]; ++at) groups_[r][static_cast<size_t>(row[at]->bucket)].push_back(row[at]);
    for (size_t b = 0; b < buckets_.size(); ++b) {
      if (!groups_[r][b].empty()) load_[r] += costs_[r][b] = chunk_cost(b, groups_[r][b]);
    }
  }
}

// Per bucket the longest, the second, the middle and the shortest item: the others cost the same as one of
// them, nearly.
std::vector<const Item*> Balancer::candidates(size_t rank) const {
  std::vector<const Item*> found;
  for (const Group& group : groups_[rank]) {
    if (group.empty()) continue;
    found.push_back(group.front());
    if (group.size() > 2) found.push_back(group[group.size() / 2]);
    if (group.size() > 1) found.push_back(group.back());
  }
  return found;
}

void Balancer::try_pair(size_t giver, size_t taker, Change& best) const {
  auto takes = candidates(taker);
  takes.push_back(nullptr);
  for (const Item* given : candidates(giver)) {
    for (const Item* taken : takes) {
      const double giver_load = load_after(giver, given, taken);
      if (giver_load >= best.worst) continue;
      const double taker_load = load_after(taker, taken, given);
      const double worst = std::max(giver_load, taker_load);
      if (worst >= best.worst) continue;
      best = {static_cast<int>(giver), static_cast<int>(taker), given, taken, worst, giver_load + taker_load};
    }
  }
}

void Balancer::improve() {
  std::vector<size_t> by_load(load_.size());
  const int max_rounds = kRoundsPerRank * options_.num_ranks;
  for (int round = 0; round < max_rounds; ++round) {
    std::iota(by_load.begin(), by_load.end(), 0);
    std::stable_sort(by_load.begin(), by_load.end(), [&](size_t a, size_t b) { return load_[a] < load_[b]; });
    const size_t giver = by_load.back();
    const double mean = std::accumulate(load_.begin(), load_.end(), 0.0) / static_cast<double>(load_.size());
    if (load_[giver] <= kGoodEnough * mean) return;
    Change best;
    best.worst = load_[giver] * (1.0 - 1e-6);
    const size_t partners = std::min<size_t>(kMaxPartners, by_load.size() - 1);
    for (size_t i = 0; i < partners; ++i) try_pair(giver, by_load[i], best);
    if (best.giver < 0) return;
    const auto taker = static_cast<size_t>(best.taker);
    take(giver, best.given);
    if (best.taken != nullptr) take(taker, best.taken);
    put(taker, best.given);
    if (best.taken != nullptr) put(giver, best.taken);
  }
}

PackedStep Balancer::finish() const {
  PackedStep packed;
  size_t num_slots = 0;
  for (const auto& rank_groups : groups_) {
    auto& slots = packed.slots.emplace_back();
    double sum = 0.0;
    for (size_t b = 0; b < rank_groups.size(); ++b) {
      const auto count = static_cast<int64_t>(rank_groups[b].size());
      const int64_t chunks = (count + options_.max_items - 1) / options_.max_items;
      for (int64_t c = 0; c < chunks; ++c) {
        MicroBatch& slot = slots.emplace_back();
        slot.bucket = static_cast<int32_t>(b);
        const auto first = static_cast<size_t>(c * count / chunks);
        const auto last = static_cast<size_t>((c + 1) * count / chunks);
        for (size_t i = first; i < last; ++i) slot.items.push_back(*rank_groups[b][i]);
        std::sort(slot.items.begin(), slot.items.end(),
                  [](const Item& x, const Item& y) { return x.position < y.position; });
        slot.work = options_.work(buckets_[b], static_cast<int64_t>(slot.items.size()),
                                  rank_groups[b][first]->num_tokens);
        sum += slot.work;
      }
    }
    packed.rank_work.push_back(sum);
    num_slots = std::max(num_slots, slots.size());
  }
  for (auto& slots : packed.slots) slots.resize(num_slots);
  return packed;
}

void swap_samples(PackedStep& packed) {
  for (auto& slots : packed.slots) {
    for (MicroBatch& slot : slots) {
      if (slot.items.size() > 1) std::swap(slot.items[0].sample, slot.items[1].sample);
    }
  }
}

PackedStep pack_buckets(const Step& step, const std::vector<Bucket>& buckets, const PackOptions& options) {
  CHILIAD_CHECK_GT(options.max_items, 0);
  CHILIAD_CHECK(options.work != nullptr, "a work model is needed");
  // Starts differ in where the rows are cut; the first of the best ones is taken.
  const size_t num_starts = std::min<size_t>(step.items.size() <= kSmallStep ? kStarts : 1, buckets.size());
  std::optional<Balancer> best;
  for (size_t start = 0; start < num_starts; ++start) {
    Balancer balancer(buckets, options);
    balancer.deal(step, start * buckets.size() / num_starts);
    balancer.improve();
    if (!best.has_value() || balancer.worst_load() < best->worst_load()) best.emplace(std::move(balancer));
  }
  return best->finish();
}

}  // namespace

PackedStep pack(const Step& step, const std::vector<Bucket>& buckets, const PackOptions& options) {
  CHILIAD_CHECK_GT(options.num_ranks, 0);
  PackedStep packed =
      options.max_tokens > 0 ? pack_rows(step, buckets, options) : pack_buckets(step, buckets, options);
  if (planted_bug("permuted_items")) swap_samples(packed);
  for (const Item& item : step.items) {
    if (item.weight <= 0.0F) continue;
    ++packed.num_items;
    packed.num_tokens += item.num_tokens;
  }
  return packed;
}

}  // namespace chiliad::stepplan
