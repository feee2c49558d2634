#include "chiliad/stepplan/permutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace chiliad::stepplan {
namespace {

std::vector<uint64_t> all_of(const Permutation& permute) {
  std::vector<uint64_t> values;
  for (uint64_t i = 0; i < permute.size(); ++i) values.push_back(permute(i));
  return values;
}

TEST(PermutationTest, IsABijectionForEverySmallSize) {
  for (uint64_t size = 1; size < 300; ++size) {
    auto values = all_of(Permutation(size, size * 7));
    std::sort(values.begin(), values.end());
    for (uint64_t i = 0; i < size; ++i) ASSERT_EQ(values[i], i) << "size " << size;
  }
}

TEST(PermutationTest, StaysInsideOfALargeDomain) {
  const Permutation permute((uint64_t{1} << 40) + 12'345, 3);
  for (uint64_t i = 0; i < 1000; ++i) EXPECT_LT(permute(i * 1'000'003), permute.size());
}

TEST(PermutationTest, KeysGiveDifferentOrders) {
  EXPECT_NE(all_of(Permutation(100, 1)), all_of(Permutation(100, 2)));
}

TEST(PermutationTest, EveryOrderOfFourItemsIsReached) {
  std::vector<std::vector<uint64_t>> orders;
  for (uint64_t key = 0; key < 2000; ++key) orders.push_back(all_of(Permutation(4, key)));
  std::sort(orders.begin(), orders.end());
  EXPECT_EQ(std::unique(orders.begin(), orders.end()) - orders.begin(), 24);
}

TEST(PermutationTest, ItemsGoEverywhereEvenly) {
  std::vector<int> counts(10);
  for (uint64_t key = 0; key < 10'000; ++key) ++counts[Permutation(10, key)(3)];
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);
}

TEST(PermutationTest, ValuesAreFixedByTheFormat) {
  EXPECT_EQ(all_of(Permutation(8, 42)), (std::vector<uint64_t>{1, 4, 6, 7, 3, 0, 2, 5}));
}

}  // namespace
}  // namespace chiliad::stepplan
