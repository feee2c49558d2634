#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "chiliad/base/error.h"
#include "chiliad/stepplan/plan.h"

namespace chiliad::stepplan {
namespace {

using ::testing::ElementsAre;

TEST(BucketsTest, DefaultsGiveNineShapes) {
  EXPECT_THAT(make_buckets({}),
              ElementsAre(Bucket{16, 56}, Bucket{16, 64}, Bucket{24, 40}, Bucket{24, 48}, Bucket{32, 32},
                          Bucket{40, 24}, Bucket{48, 24}, Bucket{56, 16}, Bucket{64, 16}));
}

TEST(BucketsTest, KeepsSidesAndAreaNearTheSettings) {
  spec::DataOptions options;
  options.resolution = 512;
  options.bucket_step = 64;
  options.bucket_min = 256;
  options.bucket_max = 1024;
  for (const Bucket bucket : make_buckets(options)) {
    EXPECT_EQ(bucket.width % 64, 0);
    EXPECT_GE(std::min(bucket.width, bucket.height), 256);
    EXPECT_LE(std::max(bucket.width, bucket.height), 1024);
    EXPECT_NEAR(std::log(bucket.width * bucket.height / (512.0 * 512.0)), 0.0, 0.2);
  }
}

TEST(BucketsTest, RefusesARangeWithoutShapes) {
  spec::DataOptions options;
  options.bucket_min = 40;
  options.bucket_max = 48;
  EXPECT_THAT([&] { (void)make_buckets(options); },
              ::testing::ThrowsMessage<InvalidInput>(::testing::HasSubstr("widen the range")));
}

TEST(BucketsTest, AssignsTheNearestRatio) {
  const auto buckets = make_buckets({});
  EXPECT_EQ(buckets[static_cast<size_t>(assign_bucket(buckets, 1000, 1000))], (Bucket{32, 32}));
  EXPECT_EQ(buckets[static_cast<size_t>(assign_bucket(buckets, 300, 500))], (Bucket{24, 40}));
  EXPECT_EQ(buckets[static_cast<size_t>(assign_bucket(buckets, 10'000, 10))], (Bucket{64, 16}));
}

TEST(BucketsTest, FirstWinsATie) {
  const std::vector<Bucket> buckets{{16, 32}, {32, 16}};
  EXPECT_EQ(assign_bucket(buckets, 7, 7), 0);
}

}  // namespace
}  // namespace chiliad::stepplan
