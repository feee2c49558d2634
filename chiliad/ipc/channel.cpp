#include "chiliad/ipc/channel.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/ipc/detail/deadline.h"

namespace chiliad::ipc {
namespace {

static_assert(std::endian::native == std::endian::little, "frame headers are little-endian");

constexpr const char* kPlace = "channel";
constexpr Nanoseconds kSendPatience = std::chrono::seconds(30);

[[noreturn]] void fail(const char* call, int error) {
  if (error == EPIPE || error == ECONNRESET || error == ENOTCONN) {
    throw PeerLost(kPlace, fmt::format("the peer has gone ({})", std::strerror(error)));
  }
  throw Unavailable(kPlace, fmt::format("{} failed: {}", call, std::strerror(error)));
}

/// Whether `events` (or the peer's end) came before the deadline.
bool wait_for(int fd, short events, const detail::Deadline& deadline) {
  while (true) {
    pollfd entry{fd, events, 0};
    const timespec rest = deadline.left_timespec();
    const int ready = ::ppoll(&entry, 1, &rest, nullptr);
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno != EINTR) fail("poll", errno);
  }
}

bool would_block(int error) {
  return error == EAGAIN || error == EWOULDBLOCK;
}

/// sendmsg of what is left of header and body; the descriptor travels with the first byte.
ssize_t send_rest(int socket, const std::array<uint32_t, 2>& header, const std::string& body, size_t done,
                  int fd) {
  std::array<iovec, 2> parts{};
  size_t num_parts = 0;
  if (done < sizeof(header)) {
    auto* start = const_cast<char*>(reinterpret_cast<const char*>(header.data()));
    parts[num_parts++] = {start + done, sizeof(header) - done};
  }
  const size_t body_done = done < sizeof(header) ? 0 : done - sizeof(header);
  if (body_done < body.size()) {
    parts[num_parts++] = {const_cast<char*>(body.data()) + body_done, body.size() - body_done};
  }
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = num_parts;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  if (fd >= 0 && done == 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* entry = CMSG_FIRSTHDR(&message);
    entry->cmsg_level = SOL_SOCKET;
    entry->cmsg_type = SCM_RIGHTS;
    entry->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(entry), &fd, sizeof(int));
  }
  return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/// Takes the descriptors of a received message into `out`. All are owned before any check, so that none
/// leaks.
void take_descriptors(msghdr& message, UniqueFd& out) {
  std::vector<UniqueFd> received;
  for (cmsghdr* entry = CMSG_FIRSTHDR(&message); entry != nullptr; entry = CMSG_NXTHDR(&message, entry)) {
    if (entry->cmsg_level != SOL_SOCKET || entry->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (entry->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(entry) + i * sizeof(int), sizeof(int));
      received.emplace_back(fd);
    }
  }
  if ((message.msg_flags & MSG_CTRUNC) != 0 || received.size() > 1 || (!received.empty() && out.valid())) {
    throw CorruptData(kPlace, "a frame carries more than one descriptor, expected at most one");
  }
  if (!received.empty()) out = std::move(received[0]);
}

}  // namespace

std::pair<Channel, Channel> Channel::pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) fail("socketpair", errno);
  return {Channel(UniqueFd(ends[0])), Channel(UniqueFd(ends[1]))};
}

void Channel::send(FrameType type, const std::string& body, int fd) {
  CHILIAD_CHECK_LE(body.size(), kMaxFrameBytes);
  const std::array<uint32_t, 2> header{static_cast<uint32_t>(type), static_cast<uint32_t>(body.size())};
  std::lock_guard lock(send_mutex_);
  if (send_broken_) throw PeerLost(kPlace, "an earlier frame was cut off, the stream cannot be used");
  const size_t total = sizeof(header) + body.size();
  size_t done = 0;
  while (done < total) {
    const ssize_t sent = send_rest(socket_.get(), header, body, done, fd);
    if (sent >= 0) {
      done += static_cast<size_t>(sent);
      continue;
    }
    if (errno == EINTR) continue;
    if (!would_block(errno)) {
      send_broken_ = done > 0;
      fail("sendmsg", errno);
    }
    if (!wait_for(socket_.get(), POLLOUT, detail::Deadline(kSendPatience))) {
      send_broken_ = done > 0;
      throw Unavailable(kPlace, "the peer has not read for 30 s");
    }
  }
}

/// Reads once into the header. Returns false where nothing can be read now.
bool Channel::fill_header() {
  auto* start = reinterpret_cast<char*>(partial_.header.data());
  iovec part{start + partial_.header_bytes, sizeof(partial_.header) - partial_.header_bytes};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got < 0 && (errno == EINTR || would_block(errno))) return false;
  if (got < 0) fail("recvmsg", errno);
  take_descriptors(message, partial_.fd);
  if (got == 0) throw PeerLost(kPlace, "the peer has closed its end");
  partial_.header_bytes += static_cast<size_t>(got);
  if (partial_.header_bytes < sizeof(partial_.header)) return true;
  if (partial_.header[1] > kMaxFrameBytes) {
    throw CorruptData(kPlace, fmt::format("frame of type {} has {} bytes, expected at most {}",
                                          partial_.header[0], partial_.header[1], kMaxFrameBytes));
  }
  partial_.body.resize(partial_.header[1]);
  return true;
}

/// Reads once into the body. Returns false where nothing can be read now.
bool Channel::fill_body() {
  const ssize_t got = ::recv(socket_.get(), partial_.body.data() + partial_.body_bytes,
                             partial_.body.size() - partial_.body_bytes, MSG_DONTWAIT);
  if (got < 0 && (errno == EINTR || would_block(errno))) return false;
  if (got < 0) fail("recv", errno);
  if (got == 0) throw PeerLost(kPlace, "the peer has closed its end inside of a frame");
  partial_.body_bytes += static_cast<size_t>(got);
  return true;
}

std::optional<Frame> Channel::receive(Nanoseconds deadline) {
  const detail::Deadline until(deadline);
  while (true) {
    const bool has_header = partial_.header_bytes == sizeof(partial_.header);
    if (has_header && partial_.body_bytes == partial_.body.size()) {
      Partial whole = std::exchange(partial_, Partial{});
      return Frame{static_cast<FrameType>(whole.header[0]), std::move(whole.body), std::move(whole.fd)};
    }
    const bool progress = has_header ? fill_body() : fill_header();
    if (!progress && !wait_for(socket_.get(), POLLIN, until)) return std::nullopt;
  }
}

}  // namespace chiliad::ipc
