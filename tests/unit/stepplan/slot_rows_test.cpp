#include "chiliad/stepplan/slot_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "chiliad/base/rng.h"

namespace chiliad::stepplan {
namespace {

Load row_of(double tiles, double text) {
  Load row;
  row.works = {0.0033 * tiles, 1e-4 * (576.0 * tiles + text)};
  row.total = row.works[0] + row.works[1];
  return row;
}

/// Largest over mean of a slot, at its worst.
double worst(const std::vector<Load>& rows, const std::vector<uint32_t>& order, size_t num_slots,
             int component) {
  const size_t size = rows.size() / num_slots;
  double most = 1.0;
  for (size_t slot = 0; slot < num_slots; ++slot) {
    double largest = 0.0;
    double sum = 0.0;
    for (size_t i = slot * size; i < (slot + 1) * size; ++i) {
      const Load& row = rows[order[i]];
      const double work = component < 0 ? row.total : row.works[static_cast<size_t>(component)];
      largest = std::max(largest, work);
      sum += work;
    }
    most = std::max(most, largest * static_cast<double>(size) / sum);
  }
  return most;
}

/// Rows of equal work; some have a long text in place of pictures.
std::vector<Load> rows_with_long_texts() {
  std::vector<Load> rows;
  for (const double tiles : {24, 20, 20, 25, 24, 24, 24, 24, 24, 24, 25, 24, 24, 25, 24, 24})
    rows.push_back(row_of(tiles, 609.0 * (26.0 - tiles) - (rows.size() < 8 ? 0.0 : 40.0)));
  return rows;
}

std::vector<Load> draw(size_t count, uint64_t seed) {
  Rng rng({seed, 8});
  std::vector<Load> rows;
  for (size_t i = 0; i < count; ++i) {
    const double tiles = rng.below(6) == 0 ? 19.0 + static_cast<double>(rng.below(4))
                                           : 24.0 + static_cast<double>(rng.below(2));
    rows.push_back(row_of(tiles, 609.0 * (27.0 - tiles) + static_cast<double>(rng.below(200))));
  }
  return rows;
}

TEST(SlotRowsTest, RowsOfFewPicturesDoNotStandBesideThoseOfMany) {
  const auto rows = rows_with_long_texts();
  EXPECT_GT(worst(rows, share_slots(rows, 2, 1), 2, 0), 1.07);  // by the total alone
  EXPECT_LE(worst(rows, share_slots(rows, 2, 2), 2, 0), 1.05);
  EXPECT_LE(worst(rows, share_slots(rows, 2, 2), 2, -1), 1.02);
}

TEST(SlotRowsTest, EachRowIsInOneSlot) {
  for (const size_t slots : {1U, 2U, 3U}) {
    const auto order = share_slots(draw(24, 1), slots, 2);
    EXPECT_EQ(order.size(), 24U);
    EXPECT_EQ(std::set<uint32_t>(order.begin(), order.end()).size(), 24U);
  }
}

TEST(SlotRowsTest, IsNoWorseThanByWorkAlone) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const auto rows = draw(32, seed);
    const auto excess = [&](int num_components) {
      const auto order = share_slots(rows, 2, num_components);
      return std::max({worst(rows, order, 2, -1) - 1.0, (worst(rows, order, 2, 0) - 1.0) / 2.5,
                       (worst(rows, order, 2, 1) - 1.0) / 2.5});
    };
    EXPECT_LE(excess(2), std::max(excess(1), 0.01) + 1e-12) << "seed " << seed;
  }
}

TEST(SlotRowsTest, TheLargestRowsOfASlotComeFirst) {
  const auto rows = draw(30, 4);
  const auto order = share_slots(rows, 3, 2);
  for (size_t i = 1; i < order.size(); ++i) {
    if (i % 10 == 0) continue;
    EXPECT_GE(rows[order[i - 1]].total, rows[order[i]].total);
  }
}

TEST(SlotRowsTest, EmptyRowsAreNoWork) {
  EXPECT_EQ(share_slots(std::vector<Load>(4), 2, 2).size(), 4U);
}

}  // namespace
}  // namespace chiliad::stepplan
