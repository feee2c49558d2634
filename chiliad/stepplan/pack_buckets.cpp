// How a step of pictures is cut into micro-batches of one bucket, where ranks wait once a step:
// 1. Items are grouped by bucket and, inside, sorted by tokens; the row of groups is cut into one run per
//    rank, so that the most work of a rank is least. So at most one bucket a rank is split.
// 2. Rounds: ranks are sorted by work, the first is paired with the last, and so on; a pair moves or swaps an
// item
//    while the larger of both falls. Then, while it helps, the rank with the most work is paired with others.
//    Costs are those of the micro-batches that would come out, with the overhead of each and its padding.
// 3. Each rank's items of one bucket become micro-batches of at most max_items, cut evenly; ranks get equal
//    slots.
// Steps of few items take the best of some rows that begin with different buckets.
// Where ranks wait in each slot: bucket_slots.cpp.
#include "chiliad/stepplan/pack_buckets.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/stepplan/bucket_costs.h"
#include "chiliad/stepplan/bucket_slots.h"

namespace chiliad::stepplan {
namespace {

constexpr int kMaxPartners = 8;
constexpr int kRoundsPerRank = 12;
constexpr int kMaxRounds = 512;
constexpr int kPairRounds = 24;
constexpr size_t kStarts = 3;
constexpr size_t kSmallStep = 256;
constexpr double kGoodEnough = 1.002;
constexpr double kDealAccuracy = 0.002;

// Entries of one bucket on one rank.
struct Group {
  int32_t bucket = 0;
  Entries entries;
  double cost = 0.0;
};

struct Change {
  size_t giver = 0, taker = 0;
  const Item* given = nullptr;  // null: nothing found
  const Item* taken = nullptr;  // null: a move
  double worst = 0.0;           // of the two ranks, after it
};

class Balancer {
 public:
  Balancer(const std::vector<Bucket>& buckets, const PackOptions& options, BucketCosts& costs)
      : buckets_(buckets),
        options_(options),
        costs_(costs),
        groups_(static_cast<size_t>(options.num_ranks)),
        load_(groups_.size()) {}

  /// `first_bucket`: where the row of buckets begins.
  void deal(const Step& step, size_t first_bucket);
  void deal_in_turn(const Step& step);
  void improve();
  [[nodiscard]] double worst_load() const { return *std::max_element(load_.begin(), load_.end()); }
  [[nodiscard]] PackedStep finish() const;

 private:
  [[nodiscard]] const Group* find(size_t rank, int32_t bucket) const;
  // Work of `group` without `out` and with `in` (either may be null).
  [[nodiscard]] double cost(const Group* group, const Item* out, const Item* in) const;
  [[nodiscard]] double load_after(size_t rank, const Item* out, const Item* in) const;
  [[nodiscard]] bool fill(const Entries& row, double limit, std::vector<size_t>& ends) const;
  void candidates(size_t rank, std::vector<const Item*>& found) const;
  void try_pair(size_t giver, size_t taker, Change& best);
  void apply(const Change& change);
  void put(size_t rank, const Item* item);
  void take(size_t rank, const Item* item);
  void pair_rounds();
  void help_the_worst();
  [[nodiscard]] double mean() const {
    return std::accumulate(load_.begin(), load_.end(), 0.0) / static_cast<double>(load_.size());
  }

  const std::vector<Bucket>& buckets_;
  const PackOptions& options_;
  BucketCosts& costs_;
  std::vector<std::vector<Group>> groups_;  // of each rank, by bucket
  std::vector<double> load_;
  std::vector<const Item*> gives_, takes_;  // room of try_pair
};

const Group* Balancer::find(size_t rank, int32_t bucket) const {
  for (const Group& group : groups_[rank]) {
    if (group.bucket == bucket) return &group;
  }
  return nullptr;
}

double Balancer::cost(const Group* group, const Item* out, const Item* in) const {
  const std::span<const Entry> entries = group == nullptr ? std::span<const Entry>() : group->entries;
  const auto count =
      static_cast<int64_t>(entries.size()) - (out != nullptr ? 1 : 0) + (in != nullptr ? 1 : 0);
  if (count == 0) return 0.0;
  if (count <= options_.max_items) {
    const size_t first = !entries.empty() && entries[0].item == out ? 1 : 0;
    std::optional<Entry> longest;
    if (in != nullptr) longest = costs_.entry(*in);
    if (first < entries.size() && (!longest || entries[first].item->num_tokens > longest->item->num_tokens))
      longest = entries[first];
    return longest->cost(count);
  }
  Entries changed;
  changed.reserve(entries.size() + 1);
  for (const Entry& entry : entries) {
    if (entry.item != out) changed.push_back(entry);
  }
  if (in != nullptr) {
    const Entry entry = costs_.entry(*in);
    changed.insert(
        std::upper_bound(changed.begin(), changed.end(), entry,
                         [](const Entry& a, const Entry& b) { return longer_first(*a.item, *b.item); }),
        entry);
  }
  return group_cost(changed, options_.max_items);
}

double Balancer::load_after(size_t rank, const Item* out, const Item* in) const {
  const auto change = [&](const Item* item, const Item* o, const Item* i) {
    const Group* group = find(rank, item->bucket);
    return cost(group, o, i) - (group == nullptr ? 0.0 : group->cost);
  };
  if (out != nullptr && in != nullptr && out->bucket == in->bucket) return load_[rank] + change(out, out, in);
  double load = load_[rank];
  if (out != nullptr) load += change(out, out, nullptr);
  if (in != nullptr) load += change(in, nullptr, in);
  return load;
}

void Balancer::put(size_t rank, const Item* item) {
  auto& groups = groups_[rank];
  auto group = std::lower_bound(groups.begin(), groups.end(), item->bucket,
                                [](const Group& g, int32_t bucket) { return g.bucket < bucket; });
  if (group == groups.end() || group->bucket != item->bucket)
    group = groups.insert(group, {item->bucket, {}, 0.0});
  const Entry entry = costs_.entry(*item);
  auto& entries = group->entries;
  entries.insert(
      std::upper_bound(entries.begin(), entries.end(), entry,
                       [](const Entry& a, const Entry& b) { return longer_first(*a.item, *b.item); }),
      entry);
  load_[rank] -= group->cost;
  load_[rank] += group->cost = group_cost(entries, options_.max_items);
}

void Balancer::take(size_t rank, const Item* item) {
  auto& groups = groups_[rank];
  const auto group =
      std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return g.bucket == item->bucket; });
  auto& entries = group->entries;
  entries.erase(
      std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.item == item; }));
  load_[rank] -= group->cost;
  load_[rank] += group->cost = group_cost(entries, options_.max_items);
  if (entries.empty()) groups.erase(group);
}

// Fills ranks along `row`, each up to `limit`; `ends` are the borders. Returns whether the ranks suffice.
bool Balancer::fill(const Entries& row, double limit, std::vector<size_t>& ends) const {
  ends.clear();
  size_t rank_start = 0;
  size_t group_start = 0;
  double closed = 0.0;   // work of the rank's groups before the current one
  double current = 0.0;  // of the current group
  for (size_t i = 0; i < row.size(); ++i) {
    if (i > 0 && row[i].item->bucket != row[i - 1].item->bucket) {
      closed += current;
      group_start = i;
    }
    current = group_cost(std::span(row).subspan(group_start, i + 1 - group_start), options_.max_items);
    if (closed + current <= limit || i == rank_start) continue;
    ends.push_back(i);
    if (ends.size() == load_.size()) return false;
    rank_start = group_start = i;
    closed = 0.0;
    current = row[i].cost(1);
  }
  ends.push_back(row.size());
  return true;
}

void Balancer::deal(const Step& step, size_t first_bucket) {
  const auto turned = [&](const Item* item) {
    return (static_cast<size_t>(item->bucket) + buckets_.size() - first_bucket) % buckets_.size();
  };
  Entries row;
  double high = 0.0;
  double sum = 0.0;
  for (const Item& item : step.items) {
    row.push_back(costs_.entry(item));
    high += row.back().cost(1);
    sum += row.back().unit;
  }
  std::sort(row.begin(), row.end(), [&](const Entry& a, const Entry& b) {
    return a.item->bucket != b.item->bucket ? turned(a.item) < turned(b.item)
                                            : longer_first(*a.item, *b.item);
  });
  double low = 0.0;
  std::vector<size_t> ends;
  if (const double guess = 1.1 * sum / static_cast<double>(load_.size()); fill(row, guess, ends))
    high = guess;
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
    auto& groups = groups_[r];
    for (; at < ends[r]; ++at) {
      const int32_t bucket = row[at].item->bucket;
      if (groups.empty() || groups.back().bucket != bucket) groups.push_back({bucket, {}, 0.0});
      groups.back().entries.push_back(row[at]);
    }
    for (Group& group : groups) load_[r] += group.cost = group_cost(group.entries, options_.max_items);
    std::sort(groups.begin(), groups.end(),
              [](const Group& a, const Group& b) { return a.bucket < b.bucket; });
  }
}

void Balancer::deal_in_turn(const Step& step) {
  for (const Item& item : step.items) put(item.position % load_.size(), &item);
}

// Per bucket the longest, the middle and the shortest item: the others cost the same as one of them, nearly.
void Balancer::candidates(size_t rank, std::vector<const Item*>& found) const {
  found.clear();
  for (const Group& group : groups_[rank]) {
    const auto& entries = group.entries;
    found.push_back(entries.front().item);
    const auto add = [&](const Item* item) {
      if (item->num_tokens != found.back()->num_tokens) found.push_back(item);
    };
    add(entries[entries.size() / 2].item);
    add(entries.back().item);
  }
}

void Balancer::try_pair(size_t giver, size_t taker, Change& best) {
  candidates(taker, takes_);
  takes_.push_back(nullptr);
  candidates(giver, gives_);
  for (const Item* given : gives_) {
    for (const Item* taken : takes_) {
      const double giver_load = load_after(giver, given, taken);
      if (giver_load >= best.worst) continue;
      const double worst = std::max(giver_load, load_after(taker, taken, given));
      if (worst >= best.worst) continue;
      best = {giver, taker, given, taken, worst};
    }
  }
}

void Balancer::apply(const Change& change) {
  take(change.giver, change.given);
  if (change.taken != nullptr) take(change.taker, change.taken);
  put(change.taker, change.given);
  if (change.taken != nullptr) put(change.giver, change.taken);
}

void Balancer::pair_rounds() {
  std::vector<std::pair<double, uint32_t>> order(load_.size());
  for (int round = 0; round < kPairRounds; ++round) {
    for (uint32_t rank = 0; rank < order.size(); ++rank) order[rank] = {load_[rank], rank};
    std::sort(order.begin(), order.end());
    const double enough = kGoodEnough * mean();
    bool changed = false;
    for (size_t i = 0; i < order.size() / 2; ++i) {
      const size_t giver = order[order.size() - 1 - i].second;
      if (load_[giver] <= enough) break;
      Change best;
      best.worst = load_[giver] * (1.0 - 1e-6);
      try_pair(giver, order[i].second, best);
      if (best.given == nullptr) continue;
      apply(best);
      changed = true;
    }
    if (!changed) return;
  }
}

void Balancer::help_the_worst() {
  std::vector<size_t> by_load(load_.size());
  const size_t partners = std::min<size_t>(kMaxPartners, load_.size() - 1);
  const int max_rounds = std::min(kMaxRounds, kRoundsPerRank * options_.num_ranks);
  for (int round = 0; round < max_rounds; ++round) {
    const auto giver = static_cast<size_t>(std::max_element(load_.begin(), load_.end()) - load_.begin());
    if (load_[giver] <= kGoodEnough * mean()) return;
    std::iota(by_load.begin(), by_load.end(), 0);
    std::partial_sort(by_load.begin(), by_load.begin() + static_cast<ptrdiff_t>(partners), by_load.end(),
                      [&](size_t a, size_t b) { return load_[a] != load_[b] ? load_[a] < load_[b] : a < b; });
    Change best;
    best.worst = load_[giver] * (1.0 - 1e-6);
    for (size_t i = 0; i < partners; ++i) {
      if (by_load[i] != giver) try_pair(giver, by_load[i], best);
    }
    if (best.given == nullptr) return;
    apply(best);
  }
}

void Balancer::improve() {
  if (load_.size() < 2) return;
  if (load_.size() > 16) pair_rounds();
  help_the_worst();
}

PackedStep Balancer::finish() const {
  PackedStep packed;
  size_t num_slots = 0;
  for (const auto& rank_groups : groups_) {
    auto& slots = packed.slots.emplace_back();
    double sum = 0.0;
    for (const Group& group : rank_groups) {
      const auto count = static_cast<int64_t>(group.entries.size());
      const int64_t chunks = (count + options_.max_items - 1) / options_.max_items;
      for (int64_t c = 0; c < chunks; ++c) {
        const auto first = static_cast<size_t>(c * count / chunks);
        const auto last = static_cast<size_t>((c + 1) * count / chunks);
        slots.push_back(
            finish_slot(std::span(group.entries).subspan(first, last - first), buckets_, options_));
        sum += slots.back().work;
      }
    }
    packed.rank_work.push_back(sum);
    num_slots = std::max(num_slots, slots.size());
  }
  for (auto& slots : packed.slots) slots.resize(num_slots);
  return packed;
}

}  // namespace

PackedStep pack_buckets(const Step& step, const std::vector<Bucket>& buckets, const PackOptions& options) {
  CHILIAD_CHECK_GT(options.max_items, 0);
  CHILIAD_CHECK(options.work != nullptr || options.component_work != nullptr, "a work model is needed");
  BucketCosts costs(buckets, options);
  if (options.in_order) {
    Balancer balancer(buckets, options, costs);
    balancer.deal_in_turn(step);
    return balancer.finish();
  }
  if (options.sync == Sync::kSlot) return pack_slots(step, buckets, options);
  // Starts differ in where the rows are cut; the first of the best ones is taken.
  const size_t num_starts = std::min<size_t>(step.items.size() <= kSmallStep ? kStarts : 1, buckets.size());
  std::optional<Balancer> best;
  for (size_t start = 0; start < num_starts; ++start) {
    Balancer balancer(buckets, options, costs);
    balancer.deal(step, start * buckets.size() / num_starts);
    balancer.improve();
    if (!best.has_value() || balancer.worst_load() < best->worst_load()) best.emplace(std::move(balancer));
  }
  return best->finish();
}

}  // namespace chiliad::stepplan
