#include "chiliad/ipc/channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <future>
#include <string>

#include "chiliad/base/error.h"
#include "chiliad/ipc/shared_memory.h"

namespace chiliad::ipc {
namespace {

constexpr Nanoseconds kNow{0};
constexpr Nanoseconds kPatient = std::chrono::seconds(20);

void write_raw(const Channel& channel, uint32_t type, uint32_t length, const std::string& body) {
  const std::array<uint32_t, 2> header{type, length};
  ASSERT_EQ(::write(channel.fd(), header.data(), sizeof(header)), static_cast<ssize_t>(sizeof(header)));
  ASSERT_EQ(::write(channel.fd(), body.data(), body.size()), static_cast<ssize_t>(body.size()));
}

TEST(ChannelTest, DeliversFramesInOrder) {
  auto [left, right] = Channel::pair();
  left.send(FrameType::kHello, "{\"pid\":1}");
  left.send(FrameType::kMetrics, "");
  const auto first = right.receive(kPatient);
  const auto second = right.receive(kPatient);
  ASSERT_TRUE(first.has_value());
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(first->type, FrameType::kHello);
  EXPECT_EQ(first->body, "{\"pid\":1}");
  EXPECT_EQ(second->type, FrameType::kMetrics);
  EXPECT_EQ(second->body, "");
}

TEST(ChannelTest, PassesADescriptorWithItsFrame) {
  auto [left, right] = Channel::pair();
  const SharedMemory memory = SharedMemory::create("test", 64);
  memory.bytes()[7] = std::byte{42};
  left.send(FrameType::kHello, "before");
  left.send(FrameType::kRing, "ring", memory.fd());
  EXPECT_FALSE(right.receive(kPatient)->fd.valid());
  auto frame = right.receive(kPatient);
  ASSERT_TRUE(frame->fd.valid());
  EXPECT_NE(::fcntl(frame->fd.get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ(SharedMemory::map(std::move(frame->fd)).bytes()[7], std::byte{42});
}

TEST(ChannelTest, NothingAfterTheDeadline) {
  auto [left, right] = Channel::pair();
  EXPECT_FALSE(right.receive(kNow).has_value());
}

TEST(ChannelTest, KeepsAPartOfAFrameOverADeadline) {
  auto [left, right] = Channel::pair();
  write_raw(left, 3, 6, "abc");
  EXPECT_FALSE(right.receive(kNow).has_value());
  ASSERT_EQ(::write(left.fd(), "def", 3), 3);
  EXPECT_EQ(right.receive(kPatient)->body, "abcdef");
}

TEST(ChannelTest, CarriesTheLargestFrame) {
  auto [left, right] = Channel::pair();
  const std::string body(kMaxFrameBytes, 'x');
  auto sending = std::async(std::launch::async, [&] { left.send(FrameType::kJournal, body); });
  const auto frame = right.receive(kPatient);
  sending.get();
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->body, body);
}

TEST(ChannelTest, DeliversAnUnknownType) {
  auto [left, right] = Channel::pair();
  write_raw(left, 999, 2, "hi");
  EXPECT_EQ(static_cast<uint32_t>(right.receive(kPatient)->type), 999U);
}

TEST(ChannelTest, RefusesAFrameOverTheLimit) {
  auto [left, right] = Channel::pair();
  write_raw(left, 3, kMaxFrameBytes + 1, "");
  try {
    (void)right.receive(kPatient);
    FAIL() << "accepted";
  } catch (const CorruptData& error) {
    EXPECT_STREQ(error.what(), "channel: frame of type 3 has 16777217 bytes, expected at most 16777216");
  }
}

TEST(ChannelTest, DeliversWhatWasSentBeforeThePeerDied) {
  auto [left, right] = Channel::pair();
  {
    Channel dying = std::move(left);
    dying.send(FrameType::kError, "last words");
  }
  EXPECT_EQ(right.receive(kPatient)->body, "last words");
  EXPECT_THROW((void)right.receive(kPatient), PeerLost);
}

TEST(ChannelTest, EndInsideOfAFrameIsPeerLost) {
  auto [left, right] = Channel::pair();
  write_raw(left, 3, 6, "abc");
  { Channel dying = std::move(left); }
  EXPECT_THROW((void)right.receive(kPatient), PeerLost);
}

TEST(ChannelTest, SendToADeadPeerThrowsAndRaisesNoSignal) {
  auto [left, right] = Channel::pair();
  { Channel dying = std::move(right); }
  EXPECT_THROW(left.send(FrameType::kStop, ""), PeerLost);
}

TEST(ChannelTest, ThreadsDoNotMixTheirFrames) {
  auto [left, right] = Channel::pair();
  auto sender = [&left = left](char letter) {
    for (int i = 0; i < 50; ++i) left.send(FrameType::kLog, std::string(10'000, letter));
  };
  auto a = std::async(std::launch::async, sender, 'a');
  auto b = std::async(std::launch::async, sender, 'b');
  for (int i = 0; i < 100; ++i) {
    const auto frame = right.receive(kPatient);
    ASSERT_TRUE(frame.has_value());
    ASSERT_EQ(frame->body, std::string(10'000, frame->body[0]));
  }
}

}  // namespace
}  // namespace chiliad::ipc
