// How loads are dealt:
// 1. Those of most work first, each to the bin that has least.
// 2. Rounds: bins are sorted by what they have too much of (the total, then each component in turn), the
// first is
//    paired with the last, the second with the last but one. A pair moves or swaps loads while the sum of the
//    squared deviations of both, in total and components, falls.
// 3. The worst bin is paired with several others while that helps.
#include "chiliad/stepplan/even_out.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <queue>
#include <utility>

#include "chiliad/base/error.h"

namespace chiliad::stepplan {
namespace {

constexpr int kDims = kMaxComponents + 1;  // the total, and components
constexpr int kRounds = 24;
constexpr int kMovesOfAPair = 4;
constexpr size_t kFullScan = 160;  // pairs of loads that are all looked at
constexpr size_t kNear = 3;        // else so many on both sides of the best by its total
constexpr size_t kPartners = 12;
// A component may differ by so much more than the total.
constexpr double kComponentSlack = 2.5;
constexpr double kGoodTotal = 1.004;
constexpr double kGoodComponent = 1.01;
constexpr double kLeastGain = 1e-10;  // in squares of relative deviations

using Vector = std::array<double, kDims>;

struct Change {
  int given = -1;  // places in the two bins; -1: none
  int taken = -1;
  double gain = 0.0;
};

class Bins {
 public:
  Bins(std::span<const Load> loads, const EvenOutOptions& options)
      : options_(options),
        dims_(options.num_components > 1 ? options.num_components + 1 : 1),
        lists_(options.num_bins),
        sums_(options.num_bins),
        tokens_(options.num_bins) {
    values_.reserve(loads.size());
    load_tokens_.reserve(loads.size());
    for (const Load& load : loads) {
      Vector value{};
      value[0] = load.total;
      for (int d = 1; d < dims_; ++d) value[static_cast<size_t>(d)] = load.works[static_cast<size_t>(d - 1)];
      for (size_t d = 0; d < kDims; ++d) mean_[d] += value[d] / static_cast<double>(options.num_bins);
      values_.push_back(value);
      load_tokens_.push_back(load.tokens);
    }
    for (int d = 0; d < dims_; ++d) {
      const auto at = static_cast<size_t>(d);
      const double unit = mean_[at] * (d == 0 ? 1.0 : kComponentSlack);
      weight_[at] = unit > 0.0 ? 1.0 / (unit * unit) : 0.0;
    }
  }

  bool deal();
  void rounds();
  void polish();
  [[nodiscard]] std::vector<std::vector<uint32_t>> take() { return std::move(lists_); }

 private:
  [[nodiscard]] bool fits(size_t bin, int64_t more) const {
    return options_.max_tokens == 0 || tokens_[bin] + more <= options_.max_tokens;
  }
  void put(size_t bin, uint32_t load) {
    auto& list = lists_[bin];
    list.insert(std::upper_bound(list.begin(), list.end(), load,
                                 [&](uint32_t a, uint32_t b) { return comes_first(a, b); }),
                load);
    add(bin, load, 1.0);
  }
  void add(size_t bin, uint32_t load, double sign) {
    for (int d = 0; d < dims_; ++d)
      sums_[bin][static_cast<size_t>(d)] += sign * values_[load][static_cast<size_t>(d)];
    tokens_[bin] += sign > 0.0 ? load_tokens_[load] : -load_tokens_[load];
  }
  [[nodiscard]] bool comes_first(uint32_t a, uint32_t b) const {
    return values_[a][0] != values_[b][0] ? values_[a][0] > values_[b][0] : a < b;
  }
  [[nodiscard]] double ratio(size_t bin, int dim) const {
    const auto d = static_cast<size_t>(dim);
    return mean_[d] > 0.0 ? sums_[bin][d] / mean_[d] : 1.0;
  }
  /// How far above the mean, in units of what is allowed.
  [[nodiscard]] double excess(size_t bin) const {
    double worst = ratio(bin, 0) - 1.0;
    for (int d = 1; d < dims_; ++d) worst = std::max(worst, (ratio(bin, d) - 1.0) / kComponentSlack);
    return worst;
  }
  [[nodiscard]] bool good() const;
  [[nodiscard]] Change best_change(size_t a, size_t b) const;
  void consider(size_t a, size_t b, const Vector& difference, int given, int taken, Change& best) const;
  void apply(size_t a, size_t b, const Change& change);
  bool improve(size_t a, size_t b, int most);

  const EvenOutOptions& options_;
  int dims_;
  std::vector<Vector> values_;
  std::vector<int64_t> load_tokens_;
  Vector mean_{};
  Vector weight_{};
  std::vector<std::vector<uint32_t>> lists_;
  std::vector<Vector> sums_;
  std::vector<int64_t> tokens_;
};

bool Bins::deal() {
  std::vector<uint32_t> order(values_.size());
  std::iota(order.begin(), order.end(), 0U);
  if (options_.in_order) {
    for (const uint32_t load : order) put(load % options_.num_bins, load);
    return true;
  }
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return comes_first(a, b); });
  using Entry = std::pair<double, uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> least;
  for (uint32_t bin = 0; bin < options_.num_bins; ++bin) least.emplace(0.0, bin);
  std::vector<Entry> full;
  for (const uint32_t load : order) {
    full.clear();
    while (!least.empty() && !fits(least.top().second, load_tokens_[load])) {
      full.push_back(least.top());
      least.pop();
    }
    if (least.empty()) return false;
    const uint32_t bin = least.top().second;
    least.pop();
    lists_[bin].push_back(load);  // stays sorted
    add(bin, load, 1.0);
    least.emplace(sums_[bin][0], bin);
    for (const Entry& entry : full) least.push(entry);
  }
  return true;
}

bool Bins::good() const {
  for (size_t bin = 0; bin < lists_.size(); ++bin) {
    if (ratio(bin, 0) > kGoodTotal) return false;
    for (int d = 1; d < dims_; ++d) {
      if (ratio(bin, d) > kGoodComponent) return false;
    }
  }
  return true;
}

// Moving d from a to b changes the sum of squares by 2 w d (d - (a - b)) in each dimension.
void Bins::consider(size_t a, size_t b, const Vector& difference, int given, int taken, Change& best) const {
  const Vector none{};
  const uint32_t give = given < 0 ? 0 : lists_[a][static_cast<size_t>(given)];
  const uint32_t take = taken < 0 ? 0 : lists_[b][static_cast<size_t>(taken)];
  const Vector& out = given < 0 ? none : values_[give];
  const Vector& in = taken < 0 ? none : values_[take];
  double gain = 0.0;
  for (int dim = 0; dim < dims_; ++dim) {
    const auto d = static_cast<size_t>(dim);
    const double moved = out[d] - in[d];
    gain += weight_[d] * moved * (difference[d] - moved);
  }
  if (gain <= best.gain) return;
  if (options_.max_tokens > 0) {
    const int64_t more = (given < 0 ? 0 : load_tokens_[give]) - (taken < 0 ? 0 : load_tokens_[take]);
    if (!fits(a, -more) || !fits(b, more)) return;
  }
  best = {given, taken, gain};
}

Change Bins::best_change(size_t a, size_t b) const {
  Vector difference{};
  for (size_t d = 0; d < kDims; ++d) difference[d] = sums_[a][d] - sums_[b][d];
  Change best;
  best.gain = kLeastGain;
  const auto num_a = static_cast<int>(lists_[a].size());
  const auto num_b = static_cast<int>(lists_[b].size());
  const bool all = (lists_[a].size() + 1) * (lists_[b].size() + 1) <= kFullScan;
  for (int taken = 0; taken < num_b; ++taken) consider(a, b, difference, -1, taken, best);
  for (int given = 0; given < num_a; ++given) {
    consider(a, b, difference, given, -1, best);
    int first = 0;
    int last = num_b;
    if (!all) {
      const double wanted = values_[lists_[a][static_cast<size_t>(given)]][0] - difference[0] / 2.0;
      const auto at = std::partition_point(lists_[b].begin(), lists_[b].end(),
                                           [&](uint32_t load) { return values_[load][0] > wanted; });
      const auto near = static_cast<int>(at - lists_[b].begin());
      first = std::max(0, near - static_cast<int>(kNear));
      last = std::min(num_b, near + static_cast<int>(kNear));
    }
    for (int taken = first; taken < last; ++taken) consider(a, b, difference, given, taken, best);
  }
  return best;
}

void Bins::apply(size_t a, size_t b, const Change& change) {
  const auto take_out = [&](size_t bin, int place) {
    auto& list = lists_[bin];
    const uint32_t load = list[static_cast<size_t>(place)];
    list.erase(list.begin() + place);
    add(bin, load, -1.0);
    return load;
  };
  const bool gives = change.given >= 0;
  const bool takes = change.taken >= 0;
  const uint32_t given = gives ? take_out(a, change.given) : 0;
  const uint32_t taken = takes ? take_out(b, change.taken) : 0;
  if (gives) put(b, given);
  if (takes) put(a, taken);
}

bool Bins::improve(size_t a, size_t b, int most) {
  bool changed = false;
  for (int i = 0; i < most; ++i) {
    const Change change = best_change(a, b);
    if (change.given < 0 && change.taken < 0) break;
    apply(a, b, change);
    changed = true;
  }
  return changed;
}

void Bins::rounds() {
  const size_t count = lists_.size();
  std::vector<std::pair<double, uint32_t>> order(count);
  int idle = 0;
  for (int round = 0; round < kRounds && idle < dims_ && !good(); ++round) {
    const int dim = round % dims_;
    for (uint32_t bin = 0; bin < count; ++bin) order[bin] = {sums_[bin][static_cast<size_t>(dim)], bin};
    std::sort(order.begin(), order.end());
    bool changed = false;
    const double mean = mean_[static_cast<size_t>(dim)];
    const double enough = mean * ((dim == 0 ? kGoodTotal : kGoodComponent) - 1.0) / 2.0;
    for (size_t i = 0; i < count / 2; ++i) {
      const auto& low = order[i];
      const auto& high = order[count - 1 - i];
      if (high.first - low.first <= enough) break;  // the pairs that follow are closer still
      changed |= improve(high.second, low.second, kMovesOfAPair);
    }
    idle = changed ? 0 : idle + 1;
  }
}

void Bins::polish() {
  const size_t count = lists_.size();
  if (count < 2) return;
  std::vector<uint32_t> order(count);
  for (size_t round = 0; round < 2 * count + 16; ++round) {
    size_t worst = 0;
    for (size_t bin = 1; bin < count; ++bin) {
      if (excess(bin) > excess(worst)) worst = bin;
    }
    const double before = excess(worst);
    if (before <= kGoodTotal - 1.0) return;
    int dim = 0;
    for (int d = 1; d < dims_; ++d) {
      if ((ratio(worst, d) - 1.0) / kComponentSlack >= before) dim = d;
    }
    std::iota(order.begin(), order.end(), 0U);
    const size_t partners = std::min(kPartners, count);
    std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(partners), order.end(),
                      [&](uint32_t a, uint32_t b) {
                        const auto d = static_cast<size_t>(dim);
                        return sums_[a][d] != sums_[b][d] ? sums_[a][d] < sums_[b][d] : a < b;
                      });
    bool better = false;
    for (size_t i = 0; i < partners && !better; ++i) {
      const size_t other = order[i];
      if (other == worst) continue;
      const Change change = best_change(worst, other);
      if (change.given < 0 && change.taken < 0) continue;
      const auto saved = std::array{lists_[worst], lists_[other]};
      const auto sums = std::array{sums_[worst], sums_[other]};
      const auto tokens = std::array{tokens_[worst], tokens_[other]};
      apply(worst, other, change);
      better = std::max(excess(worst), excess(other)) < before * (1.0 - 1e-6);
      if (better) break;
      lists_[worst] = saved[0];
      lists_[other] = saved[1];
      sums_[worst] = sums[0];
      sums_[other] = sums[1];
      tokens_[worst] = tokens[0];
      tokens_[other] = tokens[1];
    }
    if (!better) return;
  }
}

}  // namespace

std::optional<std::vector<std::vector<uint32_t>>> even_out(std::span<const Load> loads,
                                                           const EvenOutOptions& options) {
  CHILIAD_CHECK(options.num_bins > 0);
  CHILIAD_CHECK(options.num_components >= 1 && options.num_components <= kMaxComponents);
  Bins bins(loads, options);
  if (!bins.deal()) return std::nullopt;
  if (!options.in_order) {
    bins.rounds();
    bins.polish();
  }
  return bins.take();
}

}  // namespace chiliad::stepplan
