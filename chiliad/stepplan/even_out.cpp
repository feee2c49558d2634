// How loads are dealt:
// 1. In passes of as many as there are bins, those of most work first; in each the larger to bins that have
// less.
// 2. Rounds: bins are sorted by what they have too much of (the total, then each component in turn); the
// first is
//    paired with the last, the second with the last but one, in other rounds with one half of them away. A
//    pair moves or swaps loads while the sum of the squared deviations of both, in total and components,
//    falls.
// 3. The worst bin is paired with bins from all over the order while that lowers the larger excess of both.
#include "chiliad/stepplan/even_out.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "chiliad/base/error.h"

namespace chiliad::stepplan {
namespace {

constexpr int kRounds = 6;
constexpr int kMovesOfAPair = 2;
constexpr size_t kFullScan = 400;  // pairs of loads that are all looked at
constexpr size_t kNear = 6;        // else so many on both sides of the best by its total
constexpr size_t kPartners = 16;
constexpr size_t kSortedFor = 32;  // changes of the worst between two sorts
// A component may differ by so much more than the total.
constexpr double kComponentSlack = 2.5;
constexpr double kGood = 0.006;       // relative excess of the total that is left alone
constexpr double kPolished = 0.01;    // the same of the worst bin
constexpr double kLeastGain = 1e-10;  // in squares of relative deviations

/// A load in a bin, in units of what is allowed: a bin of mean size has 1 in the total and 1 / slack in a
/// component.
template <int D>
struct Entry {
  std::array<double, D> value{};
  int64_t tokens = 0;
  uint32_t load = 0;

  bool operator<(const Entry& other) const {  // most work first
    return value[0] != other.value[0] ? value[0] > other.value[0] : load < other.load;
  }
};

template <int D>
struct Bin {
  std::vector<Entry<D>> entries;  // sorted
  std::array<double, D> sum{};
  int64_t tokens = 0;

  void count(const Entry<D>& entry, double sign) {
    for (size_t d = 0; d < D; ++d) sum[d] += sign * entry.value[d];
    tokens += sign > 0.0 ? entry.tokens : -entry.tokens;
  }
  void put(const Entry<D>& entry) {
    entries.insert(std::upper_bound(entries.begin(), entries.end(), entry), entry);
    count(entry, 1.0);
  }
  Entry<D> take(int place) {
    const Entry<D> entry = entries[static_cast<size_t>(place)];
    entries.erase(entries.begin() + place);
    count(entry, -1.0);
    return entry;
  }
};

struct Change {
  int given = -1;  // places in the two bins; -1: none
  int taken = -1;
  double worth = 0.0;
  [[nodiscard]] bool found() const { return given >= 0 || taken >= 0; }
};

template <int D>
class Bins {
 public:
  Bins(std::span<const Load> loads, const EvenOutOptions& options)
      : options_(options), bins_(options.num_bins) {
    std::array<double, D> mean{};
    for (const Load& load : loads) {
      for (size_t d = 0; d < D; ++d) mean[d] += of(load, d) / static_cast<double>(options.num_bins);
    }
    for (size_t d = 0; d < D; ++d) {
      const double slack = d == 0 ? 1.0 : kComponentSlack;
      mean_[d] = mean[d] > 0.0 ? 1.0 / slack : 0.0;
      unit_[d] = mean[d] > 0.0 ? 1.0 / (slack * mean[d]) : 0.0;
    }
    entries_.reserve(loads.size());
    for (uint32_t i = 0; i < loads.size(); ++i) {
      Entry<D>& entry = entries_.emplace_back();
      for (size_t d = 0; d < D; ++d) entry.value[d] = of(loads[i], d) * unit_[d];
      entry.tokens = loads[i].tokens;
      entry.load = i;
    }
  }

  bool deal();
  void rounds();
  void polish();
  [[nodiscard]] std::vector<std::vector<uint32_t>> numbers() const {
    std::vector<std::vector<uint32_t>> all(bins_.size());
    for (size_t b = 0; b < bins_.size(); ++b) {
      all[b].reserve(bins_[b].entries.size());
      for (const Entry<D>& entry : bins_[b].entries) all[b].push_back(entry.load);
    }
    return all;
  }

 private:
  static double of(const Load& load, size_t d) { return d == 0 ? load.total : load.works[d - 1]; }
  [[nodiscard]] bool fits(const Bin<D>& bin, int64_t more) const {
    return options_.max_tokens == 0 || bin.tokens + more <= options_.max_tokens;
  }
  /// How far above the mean, in units of what is allowed.
  [[nodiscard]] double excess(const std::array<double, D>& sum) const {
    double worst = sum[0] - mean_[0];
    for (size_t d = 1; d < D; ++d) worst = std::max(worst, sum[d] - mean_[d]);
    return worst;
  }
  template <class Worth>
  [[nodiscard]] Change best_change(const Bin<D>& a, const Bin<D>& b, double least, const Worth& worth) const;
  [[nodiscard]] Change least_squares(const Bin<D>& a, const Bin<D>& b) const;
  [[nodiscard]] Change least_excess(const Bin<D>& a, const Bin<D>& b, double before) const;
  static void apply(Bin<D>& a, Bin<D>& b, const Change& change);
  bool improve(Bin<D>& a, Bin<D>& b);
  void sort_by(size_t dim);

  const EvenOutOptions& options_;
  std::array<double, D> mean_{};
  std::array<double, D> unit_{};
  std::vector<Entry<D>> entries_;
  std::vector<Bin<D>> bins_;
  std::vector<std::pair<double, uint32_t>> order_;
};

template <int D>
bool Bins<D>::deal() {
  if (options_.in_order) {
    for (const Entry<D>& entry : entries_) bins_[entry.load % bins_.size()].put(entry);
    return true;
  }
  std::sort(entries_.begin(), entries_.end());
  // In passes: of the next loads the largest goes to the bin that has least, and so on.
  const size_t count = bins_.size();
  for (size_t first = 0; first < entries_.size(); first += count) {
    sort_by(0);
    const size_t last = std::min(entries_.size(), first + count);
    for (size_t i = first; i < last; ++i) {
      size_t place = i - first;
      size_t tried = 0;
      while (tried < count && !fits(bins_[order_[place].second], entries_[i].tokens)) {
        place = (place + 1) % count;
        ++tried;
      }
      if (tried == count) return false;
      Bin<D>& bin = bins_[order_[place].second];
      bin.entries.push_back(entries_[i]);  // stays sorted
      bin.count(entries_[i], 1.0);
    }
  }
  return true;
}

/// The change of most worth, above `least`: worth(moved) of what a gives to b, which may be less than
/// nothing.
template <int D>
template <class Worth>
Change Bins<D>::best_change(const Bin<D>& a, const Bin<D>& b, double least, const Worth& worth) const {
  Change best;
  best.worth = least;
  const Entry<D> none;
  const auto consider = [&](int given, int taken) {
    const Entry<D>& out = given < 0 ? none : a.entries[static_cast<size_t>(given)];
    const Entry<D>& in = taken < 0 ? none : b.entries[static_cast<size_t>(taken)];
    std::array<double, D> moved;
    for (size_t d = 0; d < D; ++d) moved[d] = out.value[d] - in.value[d];
    const double found = worth(moved);
    if (found <= best.worth) return;
    const int64_t more = out.tokens - in.tokens;
    if (!fits(a, -more) || !fits(b, more)) return;
    best = {given, taken, found};
  };
  const auto num_a = static_cast<int>(a.entries.size());
  const auto num_b = static_cast<int>(b.entries.size());
  const bool all = a.entries.size() * b.entries.size() <= kFullScan;
  for (int taken = 0; taken < num_b; ++taken) consider(-1, taken);
  for (int given = 0; given < num_a; ++given) {
    consider(given, -1);
    int first = 0;
    int last = num_b;
    if (!all) {
      const double wanted = a.entries[static_cast<size_t>(given)].value[0] - (a.sum[0] - b.sum[0]) / 2.0;
      const auto at = std::partition_point(b.entries.begin(), b.entries.end(),
                                           [&](const Entry<D>& entry) { return entry.value[0] > wanted; });
      const auto near = static_cast<int>(at - b.entries.begin());
      first = std::max(0, near - static_cast<int>(kNear));
      last = std::min(num_b, near + static_cast<int>(kNear));
    }
    for (int taken = first; taken < last; ++taken) consider(given, taken);
  }
  return best;
}

// Moving m from a to b lowers the sum of squares by 2 m (a - b - m) in each dimension.
template <int D>
Change Bins<D>::least_squares(const Bin<D>& a, const Bin<D>& b) const {
  std::array<double, D> difference;
  for (size_t d = 0; d < D; ++d) difference[d] = a.sum[d] - b.sum[d];
  return best_change(a, b, kLeastGain, [&](const std::array<double, D>& moved) {
    double gain = 0.0;
    for (size_t d = 0; d < D; ++d) gain += moved[d] * (difference[d] - moved[d]);
    return gain;
  });
}

template <int D>
Change Bins<D>::least_excess(const Bin<D>& a, const Bin<D>& b, double before) const {
  return best_change(a, b, -before * (1.0 - 1e-6), [&](const std::array<double, D>& moved) {
    double worst = -1.0;
    for (size_t d = 0; d < D; ++d)
      worst = std::max(worst, std::max(a.sum[d] - moved[d], b.sum[d] + moved[d]) - mean_[d]);
    return -worst;
  });
}

template <int D>
void Bins<D>::apply(Bin<D>& a, Bin<D>& b, const Change& change) {
  const bool gives = change.given >= 0;
  const bool takes = change.taken >= 0;
  const Entry<D> given = gives ? a.take(change.given) : Entry<D>{};
  const Entry<D> taken = takes ? b.take(change.taken) : Entry<D>{};
  if (gives) b.put(given);
  if (takes) a.put(taken);
}

template <int D>
bool Bins<D>::improve(Bin<D>& a, Bin<D>& b) {
  for (int i = 0; i < kMovesOfAPair; ++i) {
    const Change change = least_squares(a, b);
    if (!change.found()) return i > 0;
    apply(a, b, change);
  }
  return true;
}

template <int D>
void Bins<D>::sort_by(size_t dim) {
  order_.resize(bins_.size());
  for (uint32_t bin = 0; bin < bins_.size(); ++bin) order_[bin] = {bins_[bin].sum[dim], bin};
  std::sort(order_.begin(), order_.end());
}

template <int D>
void Bins<D>::rounds() {
  const size_t count = bins_.size();
  int idle = 0;
  for (int round = 0; round < kRounds && idle < D; ++round) {
    const auto dim = static_cast<size_t>(round % D);
    const bool halves = round / D % 2 == 1;
    sort_by(dim);
    bool changed = false;
    for (size_t i = 0; i < count / 2; ++i) {
      const size_t high = halves ? i + (count + 1) / 2 : count - 1 - i;
      if (order_[high].first - order_[i].first <= kGood / 2.0) continue;
      changed |= improve(bins_[order_[high].second], bins_[order_[i].second]);
    }
    idle = changed ? 0 : idle + 1;
  }
}

template <int D>
void Bins<D>::polish() {
  const size_t count = bins_.size();
  if (count < 2) return;
  std::vector<double> excesses(count);
  for (size_t bin = 0; bin < count; ++bin) excesses[bin] = excess(bins_[bin].sum);
  const size_t partners = std::min(kPartners, count);
  for (size_t round = 0; round < 2 * count + 16; ++round) {
    const auto worst =
        static_cast<size_t>(std::max_element(excesses.begin(), excesses.end()) - excesses.begin());
    const double before = excesses[worst];
    if (before <= kPolished) return;
    if (round % kSortedFor == 0) sort_by(0);
    Change best;
    best.worth = -before;
    size_t partner = worst;
    for (size_t i = 0; i < partners && -best.worth > kPolished; ++i) {
      // From the one that has least on, and other ones in each round.
      const size_t other = order_[(i * count / partners + round) % count].second;
      if (other == worst) continue;
      const Change change = least_excess(bins_[worst], bins_[other], -best.worth);
      if (!change.found()) continue;
      best = change;
      partner = other;
    }
    if (partner == worst) return;
    apply(bins_[worst], bins_[partner], best);
    excesses[worst] = excess(bins_[worst].sum);
    excesses[partner] = excess(bins_[partner].sum);
  }
}

template <int D>
std::optional<std::vector<std::vector<uint32_t>>> even_out_in(std::span<const Load> loads,
                                                              const EvenOutOptions& options) {
  Bins<D> bins(loads, options);
  if (!bins.deal()) return std::nullopt;
  if (!options.in_order) {
    bins.rounds();
    bins.polish();
  }
  return bins.numbers();
}

}  // namespace

std::optional<std::vector<std::vector<uint32_t>>> even_out(std::span<const Load> loads,
                                                           const EvenOutOptions& options) {
  CHILIAD_CHECK(options.num_bins > 0);
  CHILIAD_CHECK(options.num_components >= 1 && options.num_components <= kMaxComponents);
  switch (options.num_components) {
    case 1:
      return even_out_in<1>(loads, options);
    case 2:
      return even_out_in<3>(loads, options);
    case 3:
      return even_out_in<4>(loads, options);
    default:
      return even_out_in<kMaxComponents + 1>(loads, options);
  }
}

}  // namespace chiliad::stepplan
