// How rows are put into slots:
// 1. By their work: the largest rows are the first slot's.
// 2. Components of rows of equal work may differ: a row of one long text has few pictures, the others more. A
//    slot with some of these and some of those has a low mean and a high maximum. So the slot with the
//    largest excess over its mean swaps rows with others while the larger excess of both falls.
#include "chiliad/stepplan/slot_rows.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "chiliad/base/error.h"

namespace chiliad::stepplan {
namespace {

constexpr int kMostSwaps = 32;
constexpr size_t kEnds = 8;      // rows of the worst slot that may go: so many of the most and of the least
constexpr double kGood = 0.01;   // relative excess that is left alone
constexpr double kSlack = 2.5;   // a component may exceed its mean by so much more than the total
constexpr double kLeast = 1e-9;  // that a swap must gain
constexpr size_t kMostDims = kMaxComponents + 1;

using Values = std::array<double, kMostDims>;  // the total, then components

/// A slot's rows as numbers: its sum and, in each dimension, its largest row and the largest of the others.
struct Slot {
  Values sum{};
  Values first{};
  Values second{};
};

class SlotSharing {
 public:
  SlotSharing(std::span<const Load> rows, size_t num_slots, int num_components)
      : size_(rows.size() / num_slots),
        dims_(num_components < 2 ? 1 : 1 + static_cast<size_t>(num_components)) {
    order_.resize(rows.size());
    std::iota(order_.begin(), order_.end(), 0U);
    std::sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) {
      return rows[a].total != rows[b].total ? rows[a].total > rows[b].total : a < b;
    });
    for (const Load& row : rows) {
      Values& values = values_.emplace_back();
      values[0] = row.total;
      std::copy(row.works.begin(), row.works.end(), values.begin() + 1);
    }
    for (size_t slot = 0; slot < num_slots; ++slot) slots_.push_back(count(slot));
  }

  void swap_rows() {
    for (int i = 0; i < kMostSwaps; ++i) {
      size_t dim = 0;
      const size_t worst = worst_slot(dim);
      if (excess(slots_[worst], {}, {}, dim) <= kGood || !improve(worst, dim)) return;
    }
  }

  [[nodiscard]] std::vector<uint32_t> by_work() {
    for (size_t first = 0; first < order_.size(); first += size_) {
      const auto begin = order_.begin() + static_cast<ptrdiff_t>(first);
      std::sort(begin, begin + static_cast<ptrdiff_t>(size_), [&](uint32_t a, uint32_t b) {
        return values_[a][0] != values_[b][0] ? values_[a][0] > values_[b][0] : a < b;
      });
    }
    return std::move(order_);
  }

 private:
  [[nodiscard]] Slot count(size_t slot) const {
    Slot made;
    for (size_t i = slot * size_; i < (slot + 1) * size_; ++i) {
      const Values& row = values_[order_[i]];
      for (size_t d = 0; d < dims_; ++d) {
        made.sum[d] += row[d];
        if (row[d] > made.first[d]) {
          made.second[d] = made.first[d];
          made.first[d] = row[d];
        } else {
          made.second[d] = std::max(made.second[d], row[d]);
        }
      }
    }
    return made;
  }

  /// How far the largest row is above the mean, in parts of what is allowed, after `out` was replaced by
  /// `in`.
  [[nodiscard]] double excess(const Slot& slot, const Values& out, const Values& in, size_t d) const {
    const double largest = std::max(out[d] < slot.first[d] ? slot.first[d] : slot.second[d], in[d]);
    const double sum = slot.sum[d] - out[d] + in[d];
    if (sum <= 0.0) return 0.0;
    return (largest * static_cast<double>(size_) / sum - 1.0) / (d == 0 ? 1.0 : kSlack);
  }
  [[nodiscard]] double excess(const Slot& slot, const Values& out, const Values& in) const {
    double most = 0.0;
    for (size_t d = 0; d < dims_; ++d) most = std::max(most, excess(slot, out, in, d));
    return most;
  }

  [[nodiscard]] size_t worst_slot(size_t& dim) const {
    size_t worst = 0;
    double most = -1.0;
    for (size_t slot = 0; slot < slots_.size(); ++slot) {
      for (size_t d = 0; d < dims_; ++d) {
        const double found = excess(slots_[slot], {}, {}, d);
        if (found <= most) continue;
        most = found;
        worst = slot;
        dim = d;
      }
    }
    return worst;
  }

  /// The best swap of one of the slot's rows of most or least of a dimension with any row of another slot.
  bool improve(size_t worst, size_t dim) {
    std::vector<size_t> places(size_);
    std::iota(places.begin(), places.end(), worst * size_);
    std::sort(places.begin(), places.end(), [&](size_t a, size_t b) {
      const double x = values_[order_[a]][dim];
      const double y = values_[order_[b]][dim];
      return x != y ? x > y : a < b;
    });
    if (places.size() > 2 * kEnds)
      places.erase(places.begin() + static_cast<ptrdiff_t>(kEnds),
                   places.end() - static_cast<ptrdiff_t>(kEnds));
    double best = excess(slots_[worst], {}, {}) - kLeast;
    size_t given = 0;
    size_t taken = order_.size();
    for (const size_t place : places) {
      const Values& out = values_[order_[place]];
      for (size_t other = 0; other < order_.size(); ++other) {
        if (other / size_ == worst) continue;
        const Values& in = values_[order_[other]];
        const double found = std::max(excess(slots_[worst], out, in), excess(slots_[other / size_], in, out));
        if (found >= best) continue;
        best = found;
        given = place;
        taken = other;
      }
    }
    if (taken == order_.size()) return false;
    std::swap(order_[given], order_[taken]);
    slots_[worst] = count(worst);
    slots_[taken / size_] = count(taken / size_);
    return true;
  }

  size_t size_;  // rows of a slot
  size_t dims_;
  std::vector<uint32_t> order_;  // rows, slot after slot
  std::vector<Values> values_;   // of each row
  std::vector<Slot> slots_;
};

}  // namespace

std::vector<uint32_t> share_slots(std::span<const Load> rows, size_t num_slots, int num_components) {
  CHILIAD_CHECK(num_slots > 0 && rows.size() % num_slots == 0);
  SlotSharing sharing(rows, num_slots, num_components);
  if (num_slots > 1) sharing.swap_rows();
  return sharing.by_work();
}

}  // namespace chiliad::stepplan
