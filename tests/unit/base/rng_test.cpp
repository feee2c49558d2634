#include "chiliad/base/rng.h"

#include <gtest/gtest.h>

#include <cmath>

namespace chiliad {
namespace {

TEST(RngTest, SameKeySameStream) {
  Rng a({1, 2, 3});
  Rng b({1, 2, 3});
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.next_u32(), b.next_u32());
}

TEST(RngTest, OrderOfKeyPartsMatters) {
  Rng a({1, 2});
  Rng b({2, 1});
  EXPECT_NE(a.next_u64(), b.next_u64());
}

TEST(RngTest, StreamIsFixedForever) {
  Rng rng({42});
  EXPECT_EQ(rng.next_u32(), Rng({42}).next_u32());
  Rng again(42);
  const uint64_t first = again.next_u64();
  Rng third(42);
  EXPECT_EQ(first, third.next_u64());
}

TEST(RngTest, NormalHasUnitMoments) {
  Rng rng(7);
  double sum = 0.0;
  double squares = 0.0;
  constexpr int kCount = 200'000;
  for (int i = 0; i < kCount; ++i) {
    const double x = rng.normal();
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kCount, 0.0, 0.01);
  EXPECT_NEAR(squares / kCount, 1.0, 0.01);
}

TEST(RngTest, BelowCoversAllValuesEvenly) {
  Rng rng(9);
  int counts[7] = {};
  for (int i = 0; i < 70'000; ++i) ++counts[rng.below(7)];
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 500);
}

}  // namespace
}  // namespace chiliad
