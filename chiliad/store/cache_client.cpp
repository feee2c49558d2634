#include "chiliad/store/cache_client.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "chiliad/base/error.h"
#include "chiliad/base/log.h"
#include "chiliad/store/detail/cache_frames.h"
#include "chiliad/store/detail/folder_socket.h"

namespace chiliad::store {

struct CacheClient::Connection {
  explicit Connection(UniqueFd socket) : channel(std::move(socket)) {}
  ipc::Channel channel;
  int64_t held_bytes = 0;
};

struct CacheClient::Held {
  Digest key{};
  int64_t bytes = 0;
  int64_t start = 0;
  int64_t length = 0;  // of what can be read
  int64_t lease = 0;
  UniqueFd file{};
  std::shared_ptr<Connection> connection{};  // null: not leased

  Held() = default;
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    if (connection == nullptr) return;
    try {
      connection->channel.send(ipc::FrameType::kCacheRelease, std::to_string(lease));
    } catch (const std::exception&) {
      // The owner has gone, and its leases with it.
    }
  }

  [[nodiscard]] int64_t read(int64_t offset, std::span<std::byte> out) const {
    const int64_t there = std::min(static_cast<int64_t>(out.size()), start + length - offset);
    int64_t done = 0;
    while (done < there) {
      const ssize_t got =
          ::pread(file.get(), out.data() + done, static_cast<size_t>(there - done), offset - start + done);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw Unavailable("block cache", fmt::format("read failed: {}", std::strerror(errno)));
      if (got == 0) break;
      done += got;
    }
    return done;
  }
};

CacheClient::~CacheClient() {
  held_.clear();  // before the connections that they are released through
}

int64_t CacheClient::read(const BlockSpec& spec, int64_t offset, std::span<std::byte> out) {
  const Digest key = spec.key();
  CHILIAD_CHECK(
      offset >= spec.offset && offset - spec.offset + static_cast<int64_t>(out.size()) <= spec.length,
      "a read outside its block");
  auto held = find_held(key);
  if (held == nullptr) {
    const Nanoseconds until = SystemClock().now() + options_.deadline;
    held = request(spec, key, offset, static_cast<int64_t>(out.size()), until);
  }
  return held->read(offset, out);
}

std::shared_ptr<CacheClient::Held> CacheClient::find_held(const Digest& key) {
  std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(held_.begin(), held_.end(), [&](const auto& held) { return held->key == key; });
  if (found == held_.end()) return nullptr;
  held_.splice(held_.begin(), held_, found);
  return held_.front();
}

std::shared_ptr<CacheClient::Held> CacheClient::request(const BlockSpec& spec, const Digest& key,
                                                        int64_t from, int64_t length, Nanoseconds until) {
  const std::string wanted = detail::write_frame(detail::WantedFrame{spec, from, length});
  while (true) {
    auto connection = take_connection(until);
    std::optional<ipc::Frame> frame;
    try {
      connection->channel.send(ipc::FrameType::kCacheWanted, wanted);
      frame = connection->channel.receive(until - SystemClock().now());
    } catch (const PeerLost&) {
      forget_lost(connection);
      continue;
    }
    if (!frame.has_value()) {  // the answer may still come: the connection is of no use any more
      throw Unavailable(spec.store + "/" + spec.object,
                        "the owner of the block cache did not answer within the deadline");
    }
    if (frame->type == ipc::FrameType::kCacheError) {
      give_back(std::move(connection));
      detail::throw_frame(frame->body);
    }
    const auto block = detail::read_block(frame->body);
    auto held = std::make_shared<Held>();  // shared by the list of those held and the reads from it
    held->key = key;
    held->bytes = spec.length;
    held->start = block.start;
    held->length = block.length;
    held->lease = block.lease;
    held->file = std::move(frame->fd);
    if (block.lease != 0) held->connection = connection;
    give_back(std::move(connection));
    if (block.lease != 0) keep(held);
    return held;
  }
}

/// Adds it to those held, and lets go of those not used for longest.
void CacheClient::keep(const std::shared_ptr<Held>& held) {
  std::list<std::shared_ptr<Held>> let_go;  // released without the lock
  std::lock_guard lock(mutex_);
  const auto same =
      std::find_if(held_.begin(), held_.end(), [&](const auto& other) { return other->key == held->key; });
  if (same != held_.end()) {
    held_bytes_ -= (*same)->bytes;
    let_go.splice(let_go.end(), held_, same);
  }
  held_.push_front(held);
  held_bytes_ += held->bytes;
  while (held_bytes_ > most_held_bytes_ && !held_.empty()) {
    held_bytes_ -= held_.back()->bytes;
    let_go.splice(let_go.end(), held_, std::prev(held_.end()));
  }
}

std::shared_ptr<CacheClient::Connection> CacheClient::take_connection(Nanoseconds until) {
  constexpr auto kPause = std::chrono::milliseconds(20);
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  for (bool first = true; first || SystemClock().now() < until; first = false) {
    if (auto socket = detail::connect_in(options_.folder)) {
      auto connection = std::make_shared<Connection>(*std::move(socket));
      try {
        const auto hello = connection->channel.receive(std::chrono::seconds(10));
        if (hello.has_value() && hello->type == ipc::FrameType::kCacheHello) {
          std::lock_guard lock(mutex_);
          most_held_bytes_ = detail::read_hello(hello->body);
          return connection;
        }
      } catch (const PeerLost&) {
        // It ended just now; there may be another owner soon.
      }
    } else if (options_.take_over) {
      options_.take_over();
    }
    std::this_thread::sleep_for(kPause);
  }
  throw Unavailable(options_.folder.string(),
                    fmt::format("no process owns this block cache ({:.0f} s waited). It belongs to `chiliad "
                                "train`, which ended",
                                to_seconds(options_.deadline)));
}

void CacheClient::give_back(std::shared_ptr<Connection> connection) {
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(connection));
}

/// All connections of that owner are gone with it. Files held stay readable.
void CacheClient::forget_lost(const std::shared_ptr<Connection>&) {
  std::lock_guard lock(mutex_);
  idle_.clear();
}

void CacheClient::distrust(const BlockSpec& spec) {
  const Digest key = spec.key();
  std::shared_ptr<Held> held;
  {
    std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(held_.begin(), held_.end(), [&](const auto& other) { return other->key == key; });
    if (found != held_.end()) {
      held = *found;
      held_bytes_ -= held->bytes;
      held_.erase(found);
    }
  }
  try {
    auto connection = take_connection(SystemClock().now() + options_.deadline);
    connection->channel.send(ipc::FrameType::kCacheDistrust, key.hex());
    give_back(std::move(connection));
  } catch (const PeerLost&) {
    // A new owner looks at every block before it serves it.
  }
}

}  // namespace chiliad::store
