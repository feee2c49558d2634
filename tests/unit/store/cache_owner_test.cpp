#include "chiliad/store/cache_owner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "chiliad/io/faults.h"
#include "chiliad/store/cache_client.h"
#include "tests/support/block_kit.h"
#include "tests/support/program.h"
#include "tests/support/scripted_store.h"
#include "tests/support/temp_dir.h"

namespace chiliad::store {
namespace {

class CacheOwnerTest : public ::testing::Test {
 protected:
  std::unique_ptr<CacheOwner> own(int64_t blocks = 100, test::ScriptedStore::Script script = {},
                                  int num_readers = 1) {
    CacheOptions options;
    options.folder = root_.path() / "cache";
    options.max_bytes = blocks * (1000 + kBlockFooterBytes);
    options.num_readers = num_readers;
    options.retry.deadline = std::chrono::milliseconds(300);
    options.retry.first_pause = std::chrono::milliseconds(1);
    return std::make_unique<CacheOwner>(options, [this, script](const std::string&, const Waiter&) {
      return std::make_unique<test::ScriptedStore>(
          std::map<std::string, std::string>{{kit_.object, kit_.bytes}}, script);
    });
  }
  CacheClient::Options client(std::function<void()> take_over = {}) const {
    return {root_.path() / "cache", std::chrono::seconds(20), std::move(take_over)};
  }
  std::string read(CacheClient& client, size_t block, int64_t at = 0, size_t length = 1000) const {
    std::string text(length, '\0');
    const auto got = client.read(kit_.blocks[block], kit_.blocks[block].offset + at,
                                 std::as_writable_bytes(std::span(text)));
    return text.substr(0, static_cast<size_t>(got));
  }

  test::BlockKit kit_{40};
  test::TempDir root_;
};

TEST_F(CacheOwnerTest, ServesReadersFromOneFetch) {
  const auto owner = own();
  CacheClient one(client());
  CacheClient two(client());
  EXPECT_EQ(read(one, 3), kit_.text_of(3));
  EXPECT_EQ(read(two, 3, 200, 300), kit_.text_of(3).substr(200, 300));
  EXPECT_EQ(owner->requests().requests, 1);
}

TEST_F(CacheOwnerTest, ReadersKeepBlocksOpen) {
  const auto owner = own();
  CacheClient reader(client());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(read(reader, 3), kit_.text_of(3));
  EXPECT_EQ(owner->stats().hits, 0);
}

TEST_F(CacheOwnerTest, ReadersLetGoOfBlocksSoThatOthersFit) {
  const auto owner = own(8);
  CacheClient reader(client());
  for (size_t i = 0; i < 30; ++i) ASSERT_EQ(read(reader, i), kit_.text_of(i));
  EXPECT_EQ(owner->stats().passed_through, 0);
  owner->cache().check_ledger();
}

TEST_F(CacheOwnerTest, ManyThreadsReadWhatIsThere) {
  const auto owner = own(8);
  CacheClient reader(client());
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < 60; ++i) {
        const size_t block = (i * 7 + t * 3) % 40;
        if (read(reader, block) != kit_.text_of(block)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(CacheOwnerTest, PassesThroughWhatDoesNotFit) {
  const auto owner = own(1);
  const auto lease = owner->cache().acquire(kit_.blocks[0]);
  CacheClient reader(client());
  EXPECT_EQ(read(reader, 5, 100, 50), kit_.text_of(5).substr(100, 50));
  EXPECT_EQ(owner->requests().bytes, 1000 + 50);
}

TEST_F(CacheOwnerTest, ReadersGetTheOwnersError) {
  const auto owner = own(100, [](int64_t, auto) { throw Unavailable("test", "no route to the store"); });
  CacheClient reader(client());
  try {
    static_cast<void>(read(reader, 1));
    FAIL();
  } catch (const Unavailable& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("no route to the store"));
  }
}

TEST_F(CacheOwnerTest, WhatTheUserMustMendIsToldAsThat) {
  const auto owner = own();
  CacheClient reader(client());
  BlockSpec missing = kit_.blocks[0];
  missing.object = "missing.tar";
  std::array<std::byte, 10> bytes{};
  EXPECT_THROW(static_cast<void>(reader.read(missing, 0, bytes)), InvalidInput);
}

TEST_F(CacheOwnerTest, ADistrustedBlockIsFetchedAgain) {
  const auto owner = own();
  CacheClient reader(client());
  static_cast<void>(read(reader, 1));
  reader.distrust(kit_.blocks[1]);
  EXPECT_EQ(read(reader, 1), kit_.text_of(1));
  EXPECT_EQ(owner->requests().requests, 2);
}

TEST_F(CacheOwnerTest, AReaderTakesOverFromAnOwnerThatEnded) {
  auto owner = own();
  std::mutex mutex;
  CacheClient reader(client([&] {
    std::lock_guard lock(mutex);
    if (owner == nullptr) owner = own();
  }));
  EXPECT_EQ(read(reader, 1), kit_.text_of(1));
  {
    std::lock_guard lock(mutex);
    owner.reset();
  }
  EXPECT_EQ(read(reader, 2), kit_.text_of(2));
}

TEST_F(CacheOwnerTest, WithoutAnOwnerReadersSaySo) {
  auto options = client();
  options.deadline = std::chrono::milliseconds(50);
  CacheClient reader(options);
  try {
    static_cast<void>(read(reader, 1));
    FAIL();
  } catch (const Unavailable& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("no process owns this block cache"));
  }
}

TEST_F(CacheOwnerTest, FetchesAheadInTheOrderOfUse) {
  const auto owner = own();
  owner->plan_ahead(0, [this](int64_t step) -> std::optional<std::vector<BlockSpec>> {
    if (step >= 10) return std::nullopt;
    return std::vector<BlockSpec>{kit_.blocks[static_cast<size_t>(step)]};
  });
  EXPECT_TRUE(test::poll_until(std::chrono::seconds(10), [&] { return owner->stats().fetched == 10; }));
  CacheClient reader(client());
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(read(reader, i), kit_.text_of(i));
  EXPECT_EQ(owner->requests().requests, 10);
}

// A cache of a fifth of the data over two epochs: what is fetched ahead is not dropped before it is used.
TEST_F(CacheOwnerTest, ASmallCacheFetchesEachBlockOnceAnEpoch) {
  constexpr int64_t kSteps = 2000;
  constexpr int64_t kKnown = 200;  // a cache ahead: without it, what is used farthest is a guess
  std::atomic<int64_t> planned{0};
  const auto block_of = [](int64_t step) { return static_cast<size_t>(step / 25 % 40); };
  const auto owner = own(8);
  owner->plan_ahead(0, [&](int64_t step) -> std::optional<std::vector<BlockSpec>> {
    planned = step;  // those before are known to the owner
    if (step >= kSteps) return std::nullopt;
    return std::vector<BlockSpec>{kit_.blocks[block_of(step)]};
  });
  CacheClient reader(client());
  for (int64_t step = 0; step < kSteps; ++step) {
    owner->reached(step);
    ASSERT_TRUE(test::poll_until(std::chrono::seconds(60),
                                 [&] { return planned >= std::min(step + kKnown, kSteps); }));
    ASSERT_EQ(read(reader, block_of(step)), kit_.text_of(block_of(step)));
  }
  EXPECT_LE(owner->requests().requests, 84);
  owner->close();
  owner->cache().check_ledger();
}

TEST_F(CacheOwnerTest, ABlockThatCannotBeFetchedAheadIsAskedForOnce) {
  const auto owner = own();
  owner->plan_ahead(0, [this](int64_t step) -> std::optional<std::vector<BlockSpec>> {
    if (step >= 3) return std::nullopt;
    std::vector<BlockSpec> blocks{kit_.blocks[static_cast<size_t>(step)]};
    if (step == 1) blocks.front().object = "missing.tar";
    return blocks;
  });
  EXPECT_TRUE(test::poll_until(std::chrono::seconds(10), [&] { return owner->stats().fetched == 2; }));
  EXPECT_TRUE(test::poll_until(std::chrono::seconds(10), [&] { return owner->requests().requests == 3; }));
  owner->close();
  EXPECT_EQ(owner->requests().requests, 3);
}

TEST_F(CacheOwnerTest, ClosingEndsAReadThatWaits) {
  CacheOptions options;
  options.folder = root_.path() / "cache";
  std::atomic<bool> asked{false};
  CacheOwner owner(options, [&](const std::string&, const Waiter&) {
    return std::make_unique<test::ScriptedStore>(
        std::map<std::string, std::string>{{kit_.object, kit_.bytes}}, [&](int64_t, auto) {
          asked = true;
          throw Unavailable("test", "down");
        });
  });
  std::thread reader([&] {
    CacheClient own_client({root_.path() / "cache", std::chrono::milliseconds(10), {}});
    EXPECT_THROW(static_cast<void>(read(own_client, 1)), Error);
  });
  EXPECT_TRUE(test::poll_until(std::chrono::seconds(10), [&] { return asked.load(); }));
  owner.close();
  reader.join();
}

}  // namespace
}  // namespace chiliad::store
