#include "chiliad/store/reliable_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/scripted_store.h"

namespace chiliad::store {
namespace {

using test::FakeWaiter;
using test::ScriptedStore;

class ReliableStoreTest : public ::testing::Test {
 protected:
  ReliableStore make(ScriptedStore::Script script, RetryOptions options = {}) {
    return {std::make_unique<ScriptedStore>(std::map<std::string, std::string>{{"a", "0123456789"}},
                                            std::move(script)),
            options, waiter_};
  }
  int64_t read(ReliableStore& store, const std::string& object = "a") {
    return store.read(object, 2, bytes_, std::chrono::seconds(60));
  }

  FakeWaiter waiter_;
  std::array<std::byte, 4> bytes_{};
};

TEST_F(ReliableStoreTest, TriesAgainAfterTrouble) {
  auto store = make([](int64_t n, auto) {
    if (n < 3) throw Unavailable("test", "no route");
  });
  EXPECT_EQ(read(store), 4);
  EXPECT_EQ(bytes_[0], std::byte{'2'});
  EXPECT_EQ(store.stats().failed, 3);
}

TEST_F(ReliableStoreTest, GivesUpAtTheDeadlineWithTheLastFailure) {
  auto store = make([](int64_t, auto) { throw Unavailable("test", "no route"); });
  try {
    static_cast<void>(read(store));
    FAIL();
  } catch (const Unavailable& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("gave up after"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("no route"));
    EXPECT_LE(waiter_.now(), RetryOptions().deadline);
    EXPECT_GE(waiter_.now(), RetryOptions().deadline / 2);
  }
}

TEST_F(ReliableStoreTest, DoesNotRepeatWhatTheUserMustMend) {
  auto store = make({});
  EXPECT_THROW(static_cast<void>(read(store, "missing")), InvalidInput);
  EXPECT_EQ(store.stats().requests, 1);
}

TEST_F(ReliableStoreTest, SlowDownHalvesTheRequestsAtOnce) {
  auto store = make([](int64_t n, auto) {
    if (n == 0) throw StoreBusy("test", "503", std::chrono::seconds(2));
  });
  EXPECT_EQ(read(store), 4);
  EXPECT_LT(store.concurrency(), 9.0);
  EXPECT_GE(waiter_.now(), std::chrono::seconds(2));
  EXPECT_EQ(store.stats().slow_down, 1);
}

TEST_F(ReliableStoreTest, AStoreThatIsDownSeesFewRequests) {
  RetryOptions options;
  options.longest_pause = std::chrono::milliseconds(50);
  options.retry_burst = 10.0;
  options.retries_per_second = 2.0;
  auto store = make([](int64_t, auto) { throw Unavailable("test", "down"); }, options);
  EXPECT_THROW(static_cast<void>(read(store)), Unavailable);
  EXPECT_LE(store.stats().requests, 10 + 2 * 300 + 2);
  EXPECT_GE(store.stats().requests, 100);
}

TEST_F(ReliableStoreTest, StoppingEndsAReadThatWaits) {
  auto store = make([this](int64_t n, auto) {
    if (n == 2) waiter_.stop();
    throw Unavailable("test", "down");
  });
  EXPECT_THROW(static_cast<void>(read(store)), Unavailable);
  EXPECT_EQ(store.stats().requests, 3);
}

TEST_F(ReliableStoreTest, KeepsTheRequestRate) {
  RetryOptions options;
  options.requests_per_second = 10.0;
  auto store = make({}, options);
  for (int i = 0; i < 50; ++i) static_cast<void>(read(store));
  EXPECT_GE(waiter_.now(), std::chrono::milliseconds(4500));
}

}  // namespace
}  // namespace chiliad::store
