#include "chiliad/store/request_limits.h"

#include <gtest/gtest.h>

namespace chiliad::store {
namespace {

using std::chrono::seconds;

TEST(TokenBucketTest, KeepsTheRateBehindTheBurst) {
  TokenBucket bucket(2.0, 4.0);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(bucket.take(seconds(1)).count(), 0);
  EXPECT_EQ(bucket.take(seconds(1)), std::chrono::milliseconds(500));
  EXPECT_EQ(bucket.take(seconds(1)), seconds(1));
}

TEST(TokenBucketTest, FillsWithTime) {
  TokenBucket bucket(2.0, 2.0);
  static_cast<void>(bucket.take(seconds(1)));
  static_cast<void>(bucket.take(seconds(1)));
  EXPECT_EQ(bucket.take(seconds(2)).count(), 0);
}

TEST(TokenBucketTest, RateZeroNeverWaits) {
  TokenBucket bucket(0.0, 1.0);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(bucket.take(seconds(0)).count(), 0);
}

TEST(ConcurrencyLimitTest, HalvesOnceForAllThatRanWhenTheStoreAskedFirst) {
  ConcurrencyLimit limit(16);
  ConcurrencyLimit::Ticket first;
  ConcurrencyLimit::Ticket second;
  ASSERT_TRUE(limit.enter(seconds(0), first));
  ASSERT_TRUE(limit.enter(seconds(0), second));
  limit.leave(first, false, true);
  limit.leave(second, false, true);
  EXPECT_EQ(limit.limit(), 8.0);
}

TEST(ConcurrencyLimitTest, GrowsBackByOneForARoundOfSuccesses) {
  ConcurrencyLimit limit(16);
  ConcurrencyLimit::Ticket ticket;
  ASSERT_TRUE(limit.enter(seconds(0), ticket));
  limit.leave(ticket, false, true);
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(limit.enter(seconds(0), ticket));
    limit.leave(ticket, true, false);
  }
  EXPECT_NEAR(limit.limit(), 9.0, 0.1);
}

TEST(ConcurrencyLimitTest, OneMayAlwaysRun) {
  ConcurrencyLimit limit(1);
  ConcurrencyLimit::Ticket ticket;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(limit.enter(seconds(0), ticket));
    limit.leave(ticket, false, true);
  }
  ASSERT_TRUE(limit.enter(seconds(0), ticket));
  ConcurrencyLimit::Ticket other;
  EXPECT_FALSE(limit.enter(seconds(0), other));
}

}  // namespace
}  // namespace chiliad::store
