#include "chiliad/remote/http_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/support/http_server.h"

namespace chiliad::remote {
namespace {

using ::testing::HasSubstr;
using Kind = test::HttpFault::Kind;

class HttpStoreTest : public ::testing::Test {
 protected:
  HttpStoreTest() {
    server_.put("a.tar", std::string(100000, 'a'));
    HttpStore::Options options;
    options.url = options.base = server_.address();
    options.stall_timeout = std::chrono::milliseconds(300);
    store_ = std::make_unique<HttpStore>(options, waiter_);
  }
  void fail(test::HttpFault fault) {
    server_.set_faults([fault](const auto&) { return fault; });
  }
  int64_t read() { return store_->read("a.tar", 100, bytes_, std::chrono::seconds(20)); }
  std::string message() {
    try {
      static_cast<void>(read());
      return "no failure";
    } catch (const Error& error) {
      return error.what();
    }
  }

  test::HttpServer server_;
  store::Waiter waiter_;
  std::unique_ptr<HttpStore> store_;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(50000);
};

TEST_F(HttpStoreTest, AnAnswerThatEndsEarlyIsTrouble) {
  fail({Kind::kShort});
  EXPECT_THROW(static_cast<void>(read()), Unavailable);
}

TEST_F(HttpStoreTest, HalfOfTheRangeIsTrouble) {
  fail({Kind::kShortRange});
  EXPECT_THROW(static_cast<void>(read()), Unavailable);
}

TEST_F(HttpStoreTest, AClosedConnectionIsTrouble) {
  fail({Kind::kDrop});
  EXPECT_THROW(static_cast<void>(read()), Unavailable);
}

TEST_F(HttpStoreTest, AStallIsTroubleLongBeforeTheTimeout) {
  fail({Kind::kStall});
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW(static_cast<void>(read()), Unavailable);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(15));
}

TEST_F(HttpStoreTest, StoppingEndsAStall) {
  fail({Kind::kStall});
  std::thread stopper([&] {
    while (server_.requests() == 0) std::this_thread::yield();
    waiter_.stop();
  });
  EXPECT_THROW(static_cast<void>(read()), Unavailable);
  stopper.join();
}

TEST_F(HttpStoreTest, SlowDownNamesHowLong) {
  fail({.kind = Kind::kStatus, .status = 503, .retry_after = "7"});
  try {
    static_cast<void>(read());
    FAIL();
  } catch (const store::StoreBusy& busy) {
    EXPECT_EQ(busy.retry_after(), std::chrono::seconds(7));
  }
}

TEST_F(HttpStoreTest, ServerErrorsAreTrouble) {
  fail({.kind = Kind::kStatus, .status = 500});
  EXPECT_THROW(static_cast<void>(read()), Unavailable);
}

TEST_F(HttpStoreTest, DeniedSaysWhereCredentialsComeFrom) {
  fail({.kind = Kind::kStatus, .status = 403});
  EXPECT_THAT(message(), HasSubstr("access is denied. Check the credentials"));
  EXPECT_THROW(static_cast<void>(read()), InvalidInput);
}

TEST_F(HttpStoreTest, MissingSaysWhatToDo) {
  server_.remove("a.tar");
  EXPECT_THAT(message(), HasSubstr("there is no such object. Check the address, or index the data again"));
}

TEST_F(HttpStoreTest, NobodyAtTheAddressIsTrouble) {
  HttpStore::Options options;
  options.url = options.base = "http://127.0.0.1:1";
  HttpStore none(options, waiter_);
  EXPECT_THROW(static_cast<void>(none.stat("a.tar", std::chrono::seconds(5))), Unavailable);
}

TEST_F(HttpStoreTest, APasswordInTheAddressIsRefusedAndNotRepeated) {
  HttpStore::Options options;
  options.url = options.base = "http://me:hunter2@127.0.0.1/data";
  try {
    const HttpStore none(options, waiter_);
    FAIL();
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("~/.netrc"));
    EXPECT_THAT(error.what(), ::testing::Not(HasSubstr("hunter2")));
  }
}

TEST_F(HttpStoreTest, ConnectionsAreUsedAgain) {
  for (int i = 0; i < 5; ++i) EXPECT_EQ(read(), 50000);
  EXPECT_EQ(server_.connections(), 1);
}

}  // namespace
}  // namespace chiliad::remote
