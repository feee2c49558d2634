#include "chiliad/loader/decoded_cache.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

namespace chiliad::loader {
namespace {

std::vector<std::byte> picture(int value, size_t size = 100) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

bool holds(DecodedCache& cache, int64_t sample) {
  std::vector<std::byte> out(100);
  return cache.copy_to({.sample = sample}, out) && out == picture(static_cast<int>(sample));
}

TEST(DecodedCacheTest, GivesWhatWasPut) {
  DecodedCache cache(1000);
  cache.put({.sample = 3}, picture(3));
  EXPECT_TRUE(holds(cache, 3));
  EXPECT_FALSE(holds(cache, 4));
}

TEST(DecodedCacheTest, KeepsCropsAndFlipsApart) {
  DecodedCache cache(1000);
  cache.put({.sample = 3, .flip = true}, picture(9));
  EXPECT_FALSE(holds(cache, 3));
  cache.put({.sample = 4, .crop_x = 0.25F}, picture(9));
  EXPECT_FALSE(holds(cache, 4));
}

TEST(DecodedCacheTest, NeverExceedsItsBytes) {
  DecodedCache cache(350);
  for (int i = 0; i < 50; ++i) {
    cache.put({.sample = i}, picture(i));
    EXPECT_LE(cache.num_bytes(), 350);
  }
  EXPECT_EQ(cache.num_bytes(), 300);
}

TEST(DecodedCacheTest, DropsWhatWasNotUsedForLongest) {
  DecodedCache cache(200);
  cache.put({.sample = 1}, picture(1));
  cache.put({.sample = 2}, picture(2));
  EXPECT_TRUE(holds(cache, 1));
  cache.put({.sample = 3}, picture(3));
  EXPECT_TRUE(holds(cache, 1));
  EXPECT_FALSE(holds(cache, 2));
}

TEST(DecodedCacheTest, LeavesOutWhatIsTooLarge) {
  DecodedCache cache(99);
  cache.put({.sample = 1}, picture(1));
  EXPECT_EQ(cache.num_bytes(), 0);
}

TEST(DecodedCacheTest, ServesManyThreads) {
  DecodedCache cache(1500);
  std::array<int, 4> wrong{};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&cache, &wrong, t] {
      std::vector<std::byte> out(100);
      for (int i = 0; i < 2000; ++i) {
        const int sample = (i * 7 + static_cast<int>(t)) % 40;
        if (cache.copy_to({.sample = sample}, out) && out != picture(sample)) ++wrong[t];
        cache.put({.sample = sample}, picture(sample));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const int count : wrong) EXPECT_EQ(count, 0);
}

}  // namespace
}  // namespace chiliad::loader
