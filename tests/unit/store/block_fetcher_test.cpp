#include "chiliad/store/block_fetcher.h"

#include <gtest/gtest.h>

#include "tests/support/block_kit.h"
#include "tests/support/scripted_store.h"

namespace chiliad::store {
namespace {

class BlockFetcherTest : public ::testing::Test {
 protected:
  BlockFetcher make(test::ScriptedStore::Script script) {
    return {[this, script](const std::string&, const Waiter&) {
              return std::make_unique<test::ScriptedStore>(
                  std::map<std::string, std::string>{{kit_.object, kit_.bytes}}, script);
            },
            {},
            waiter_};
  }
  test::BlockKit kit_{3};
  test::FakeWaiter waiter_;
};

std::string text_of(const FetchedBlock& fetched) {
  return {reinterpret_cast<const char*>(fetched.bytes.data()), fetched.bytes.size()};
}

TEST_F(BlockFetcherTest, ReadsABlockInOneRequest) {
  auto fetcher = make({});
  EXPECT_EQ(text_of(fetcher.fetch(kit_.blocks[1])), kit_.text_of(1));
  EXPECT_EQ(fetcher.stats().requests, 1);
}

TEST_F(BlockFetcherTest, ReadsAgainWhatArrivedWrong) {
  auto fetcher = make([](int64_t n, std::span<std::byte> bytes) {
    if (n < 2) bytes[static_cast<size_t>(100 + n)] ^= std::byte{4};  // other bytes each time
  });
  const FetchedBlock fetched = fetcher.fetch(kit_.blocks[1]);
  EXPECT_EQ(text_of(fetched), kit_.text_of(1));
  EXPECT_FALSE(fetched.damaged);
  EXPECT_EQ(fetcher.wrong_bytes(), 2);
}

TEST_F(BlockFetcherTest, TheSameWrongBytesTwiceAreWhatTheStoreHas) {
  auto fetcher = make([](int64_t, std::span<std::byte> bytes) { bytes[100] ^= std::byte{4}; });
  EXPECT_TRUE(fetcher.fetch(kit_.blocks[1]).damaged);
  EXPECT_EQ(fetcher.stats().requests, 2);
}

TEST_F(BlockFetcherTest, AnObjectThatEndsEarlyIsDamaged) {
  BlockSpec spec = kit_.blocks[2];
  spec.length += 500;
  spec.parts.push_back({3000, 500, 1});
  auto fetcher = make({});
  const FetchedBlock fetched = fetcher.fetch(spec);
  EXPECT_TRUE(fetched.damaged);
  EXPECT_EQ(fetched.bytes.size(), 1000U);
}

TEST_F(BlockFetcherTest, BytesThatNeverArriveWellAreUnavailable) {
  auto fetcher = make([](int64_t n, std::span<std::byte> bytes) {
    bytes[static_cast<size_t>(n % 1000)] ^= std::byte{static_cast<unsigned char>(1 + n % 7)};
  });
  EXPECT_THROW(static_cast<void>(fetcher.fetch(kit_.blocks[1])), Unavailable);
}

}  // namespace
}  // namespace chiliad::store
