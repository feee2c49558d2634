#include "chiliad/stepplan/even_out.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "chiliad/base/rng.h"

namespace chiliad::stepplan {
namespace {

/// Like documents with pictures: 1 to 5 tiles, and tokens of them and of text.
std::vector<Load> draw(size_t count, uint64_t seed) {
  Rng rng({seed, 5});
  std::vector<Load> loads;
  for (size_t i = 0; i < count; ++i) {
    const auto tiles = static_cast<double>(rng.below(6));
    const double tokens = 576.0 * tiles + 20.0 + static_cast<double>(rng.below(300));
    Load& load = loads.emplace_back();
    load.tokens = static_cast<int64_t>(tokens);
    load.works = {0.003 * tiles, 1e-5 * tokens + 1e-10 * tokens * tokens};
    load.total = load.works[0] + load.works[1];
  }
  return loads;
}

using Bins = std::vector<std::vector<uint32_t>>;

double worst(const std::vector<Load>& loads, const Bins& bins, int component) {
  double most = 0.0;
  double sum = 0.0;
  for (const auto& bin : bins) {
    double work = 0.0;
    for (const uint32_t load : bin)
      work += component < 0 ? loads[load].total : loads[load].works[static_cast<size_t>(component)];
    most = std::max(most, work);
    sum += work;
  }
  return most * static_cast<double>(bins.size()) / sum;
}

class EvenOutTest : public ::testing::TestWithParam<size_t> {};

TEST_P(EvenOutTest, EachLoadIsInOneBin) {
  const auto loads = draw(16 * GetParam(), 1);
  std::multiset<uint32_t> seen;
  const auto bins = *even_out(loads, {GetParam(), 2});
  for (const auto& bin : bins) seen.insert(bin.begin(), bin.end());
  ASSERT_EQ(seen.size(), loads.size());
  EXPECT_EQ(*seen.rbegin(), loads.size() - 1);
  EXPECT_EQ(std::set<uint32_t>(seen.begin(), seen.end()).size(), loads.size());
}

TEST_P(EvenOutTest, TotalIsWithinTwoPercent) {
  const auto loads = draw(16 * GetParam(), 2);
  EXPECT_LE(worst(loads, *even_out(loads, {GetParam(), 2}), -1), 1.02);
}

TEST_P(EvenOutTest, EachComponentIsWithinFivePercent) {
  const auto loads = draw(16 * GetParam(), 3);
  const auto bins = *even_out(loads, {GetParam(), 2});
  EXPECT_LE(worst(loads, bins, 0), 1.05);
  EXPECT_LE(worst(loads, bins, 1), 1.05);
}

TEST_P(EvenOutTest, HoldsTheBoundOfTokens) {
  const auto loads = draw(16 * GetParam(), 4);
  int64_t sum = 0;
  for (const Load& load : loads) sum += load.tokens;
  const int64_t most = sum / static_cast<int64_t>(GetParam()) * 11 / 10 + 3500;
  const auto bins = even_out(loads, {GetParam(), 2, most});
  ASSERT_TRUE(bins.has_value());
  for (const auto& bin : *bins) {
    int64_t tokens = 0;
    for (const uint32_t load : bin) tokens += loads[load].tokens;
    EXPECT_LE(tokens, most);
  }
}

INSTANTIATE_TEST_SUITE_P(Bins, EvenOutTest, ::testing::Values(8U, 61U, 64U, 1000U));

TEST(EvenOutAloneTest, IsAFunctionOfItsLoads) {
  const auto loads = draw(300, 5);
  EXPECT_EQ(*even_out(loads, {20, 2}), *even_out(loads, {20, 2}));
}

TEST(EvenOutAloneTest, OneComponentIsTheTotalAlone) {
  const auto loads = draw(640, 6);
  EXPECT_LE(worst(loads, *even_out(loads, {64, 1}), -1), 1.01);
}

TEST(EvenOutAloneTest, SaysWhereThereIsNoRoom) {
  EXPECT_FALSE(even_out(draw(10, 7), {1, 1, 100}).has_value());
}

TEST(EvenOutAloneTest, FewerLoadsThanBinsLeaveSomeEmpty) {
  const auto bins = *even_out(draw(3, 8), {5, 1});
  EXPECT_EQ(std::count_if(bins.begin(), bins.end(), [](const auto& bin) { return bin.empty(); }), 2);
}

TEST(EvenOutAloneTest, NoLoadsAreNoWork) {
  EXPECT_EQ(*even_out({}, {3, 2}), Bins(3));
}

}  // namespace
}  // namespace chiliad::stepplan
