#include "chiliad/train/parent_link.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "tests/support/program.h"

namespace chiliad::train {
namespace {

constexpr const char* kSlotFree = R"({"slot":1,"step":8,"committed":true})";

class ParentLinkTest : public testing::Test {
 protected:
  ParentLinkTest() {
    auto [parent, worker] = ipc::Channel::pair();
    parent_ = std::make_unique<ipc::Channel>(std::move(parent));
    link_ = std::make_unique<ParentLink>(std::move(worker));
  }

  std::unique_ptr<ipc::Channel> parent_;
  std::unique_ptr<ParentLink> link_;
};

TEST_F(ParentLinkTest, TellsOfFreedSlots) {
  std::atomic<int> slot{-1};
  link_->on_slot_free([&](int index, int64_t step, bool committed) {
    if (step == 8 && committed) slot = index;
  });
  parent_->send(ipc::FrameType::kSlotFree, kSlotFree);
  EXPECT_TRUE(test::poll_until(std::chrono::seconds(5), [&] { return slot == 1; }));
}

// The parent frees the last slot while the worker tears down what the callback uses.
TEST_F(ParentLinkTest, NoCallbackAfterFinish) {
  std::atomic<int> calls{0};
  link_->on_slot_free([&](int, int64_t, bool) { ++calls; });
  link_->finish();
  parent_->send(ipc::FrameType::kSlotFree, kSlotFree);
  link_.reset();  // joins the listener, which may have read the frame
  EXPECT_EQ(calls, 0);
}

TEST_F(ParentLinkTest, FinishAwaitsARunningCallback) {
  std::atomic<bool> entered{false};
  std::atomic<bool> left{false};
  link_->on_slot_free([&](int, int64_t, bool) {
    entered = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    left = true;
  });
  parent_->send(ipc::FrameType::kSlotFree, kSlotFree);
  ASSERT_TRUE(test::poll_until(std::chrono::seconds(5), [&] { return entered.load(); }));
  link_->finish();
  EXPECT_TRUE(left);
}

TEST_F(ParentLinkTest, AStopIsSeen) {
  EXPECT_FALSE(link_->stop_requested());
  parent_->send(ipc::FrameType::kStop, "");
  EXPECT_TRUE(test::poll_until(std::chrono::seconds(5), [&] { return link_->stop_requested(); }));
}

}  // namespace
}  // namespace chiliad::train
