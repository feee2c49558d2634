// A connection, from the owner's side:
// 1. hello  2. wanted -> block (a lease that ends with release, or with the connection) or error.
#include "chiliad/store/detail/cache_server.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/base/log.h"
#include "chiliad/ipc/shared_memory.h"
#include "chiliad/store/detail/cache_frames.h"
#include "chiliad/store/detail/folder_socket.h"
#include "chiliad/store/detail/quiet_thread.h"

namespace chiliad::store::detail {
namespace {

constexpr size_t kMostConnections = 4096;
constexpr Nanoseconds kLookUp = std::chrono::milliseconds(500);

}  // namespace

CacheServer::CacheServer(const std::filesystem::path& folder, BlockCache& cache, BlockFetcher& fetcher,
                         Waiter& waiter, int64_t held_bytes)
    : cache_(cache),
      fetcher_(fetcher),
      waiter_(waiter),
      held_bytes_(held_bytes),
      socket_(listen_in(folder)),
      accepting_(quiet_thread([this] { accept_readers(); })) {}

void CacheServer::close() {
  if (!accepting_.joinable()) return;
  ::shutdown(socket_.get(), SHUT_RDWR);
  accepting_.join();
}

void CacheServer::accept_readers() {
  while (!waiter_.stopped()) {
    pollfd entry{socket_.get(), POLLIN, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(kLookUp.count() / 1'000'000));
    join_finished(false);
    if (ready <= 0 || waiter_.stopped()) continue;
    UniqueFd peer(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!peer.valid() || connections_.size() >= kMostConnections) continue;
    Connection& connection = connections_.emplace_back(std::move(peer));
    connection.thread = quiet_thread([this, &connection] { serve(connection); });
  }
  for (Connection& connection : connections_) ::shutdown(connection.channel.fd(), SHUT_RDWR);
  join_finished(true);
}

void CacheServer::join_finished(bool all) {
  for (auto it = connections_.begin(); it != connections_.end();) {
    if (!all && !it->done) {
      ++it;
      continue;
    }
    it->thread.join();
    it = connections_.erase(it);
  }
}

void CacheServer::serve(Connection& connection) {
  Leases leases;
  ipc::Channel& channel = connection.channel;
  try {
    channel.send(ipc::FrameType::kCacheHello, write_hello(held_bytes_));
    while (!waiter_.stopped()) {
      const auto frame = channel.receive(kLookUp);
      if (!frame.has_value()) continue;
      if (frame->type == ipc::FrameType::kCacheWanted) answer(channel, frame->body, leases);
      if (frame->type == ipc::FrameType::kCacheRelease) release(leases, frame->body);
      if (frame->type == ipc::FrameType::kCacheDistrust) cache_.distrust(Digest::from_hex(frame->body));
    }
  } catch (const PeerLost&) {
    // A reader that has gone holds nothing any more.
  } catch (const std::exception& error) {
    log_warn("block cache: a reader is dropped: {}", error.what());
  }
  leases.by_number.clear();
  ::shutdown(channel.fd(), SHUT_RDWR);
  connection.done = true;
}

void CacheServer::release(Leases& leases, const std::string& number) {
  int64_t value = 0;
  std::from_chars(number.data(), number.data() + number.size(), value);
  leases.by_number.erase(value);
}

void CacheServer::answer(ipc::Channel& channel, const std::string& body, Leases& leases) {
  const WantedFrame wanted = read_wanted(body);
  try {
    auto lease = cache_.acquire(wanted.spec);
    if (lease.has_value()) {
      const BlockFrame block{wanted.spec.offset, lease->num_bytes(), leases.next};
      channel.send(ipc::FrameType::kCacheBlock, write_frame(block), lease->file().fd());
      leases.by_number.emplace(leases.next++, *std::move(lease));
      return;
    }
    std::vector<std::byte> bytes(static_cast<size_t>(wanted.length));
    const int64_t got = fetcher_.read(wanted.spec.store, wanted.spec.object, wanted.from, bytes);
    const UniqueFd memory(::memfd_create("chiliad-passed-through", MFD_CLOEXEC));
    int64_t done = 0;
    while (done < got) {
      const ssize_t put = ::write(memory.get(), bytes.data() + done, static_cast<size_t>(got - done));
      if (put <= 0) throw Unavailable("block cache", "no memory to pass bytes through");
      done += put;
    }
    channel.send(ipc::FrameType::kCacheBlock, write_frame(BlockFrame{wanted.from, got, 0}), memory.get());
  } catch (const PeerLost&) {
    throw;
  } catch (const std::exception& error) {
    channel.send(ipc::FrameType::kCacheError, write_error(error));
  }
}

}  // namespace chiliad::store::detail
