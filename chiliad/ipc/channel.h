#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "chiliad/base/clock.h"
#include "chiliad/base/unique_fd.h"

namespace chiliad::ipc {

/// What a frame between worker and parent means. Values are fixed: append only.
enum class FrameType : uint32_t {
  kHello = 1,         ///< worker -> parent: {"pid"}; the first frame
  kRing = 2,          ///< worker -> parent: {"slots", "slot_bytes"}, with the snapshot ring's descriptor
  kMetrics = 3,       ///< worker -> parent: one line for metrics.jsonl
  kSnapshot = 4,      ///< worker -> parent: {"step", "slot"}: a complete snapshot lies in the ring
  kJournal = 5,       ///< worker -> parent: amendments as JSON lines; answered by kJournalDone when durable
  kFinished = 6,      ///< worker -> parent: {"step", "reason"}; the worker exits 0 next
  kError = 7,         ///< worker -> parent: {"kind", "place", "message", "step"}; the worker exits next
  kLog = 8,           ///< worker -> parent: {"level", "line"}
  kLedger = 9,        ///< worker -> parent: one line for ledger.jsonl
  kJournalDone = 16,  ///< parent -> worker
  kStop = 17,         ///< parent -> worker: save at the next step border and leave
  kSlotFree = 18,     ///< parent -> worker: {"slot", "step", "committed"}: may be written again
  // Between a reader and the owner of a node's block cache (store/cache_server.h):
  kCacheHello = 32,     ///< owner -> reader, first: {"held_bytes"}: blocks that it may hold
  kCacheWanted = 33,    ///< reader -> owner: a block, and the range of it that is wanted now
  kCacheBlock = 34,     ///< owner -> reader: {"start", "leased"}, with a descriptor
  kCacheError = 35,     ///< owner -> reader: {"kind", "place", "message"}
  kCacheRelease = 36,   ///< reader -> owner: a block's key; not answered
  kCacheDistrust = 37,  ///< reader -> owner: key of a block whose bytes are wrong; not answered
};

struct Frame {
  FrameType type = FrameType::kHello;
  std::string body;  ///< JSON or plain text, at most kMaxFrameBytes
  UniqueFd fd;       ///< a passed descriptor, or invalid
};

inline constexpr size_t kMaxFrameBytes = 16 << 20;

/// One end of a Unix stream socket that carries frames: u32 type, u32 length (little-endian), body, and
/// descriptors by SCM_RIGHTS. `send` is thread-safe; `receive` is for one thread.
class Channel {
 public:
  explicit Channel(UniqueFd socket) : socket_(std::move(socket)) {}
  /// A connected pair; both ends close-on-exec.
  [[nodiscard]] static std::pair<Channel, Channel> pair();

  /// Throws PeerLost if the peer has gone, Unavailable if it does not read for 30 s.
  void send(FrameType type, const std::string& body, int fd = -1);
  /// The next frame, or nothing after `deadline`. Throws PeerLost at end of stream, CorruptData for a frame
  /// over the limit.
  [[nodiscard]] std::optional<Frame> receive(Nanoseconds deadline);

  [[nodiscard]] int fd() const { return socket_.get(); }
  [[nodiscard]] UniqueFd release() { return std::move(socket_); }

  Channel(Channel&& other) noexcept
      : socket_(std::move(other.socket_)),
        send_broken_(other.send_broken_),
        partial_(std::move(other.partial_)) {}

 private:
  /// A frame of which a part has arrived; kept when a deadline passes inside of it.
  struct Partial {
    std::array<uint32_t, 2> header{};
    size_t header_bytes = 0;
    std::string body;
    size_t body_bytes = 0;
    UniqueFd fd;
  };
  [[nodiscard]] bool fill_header();
  [[nodiscard]] bool fill_body();

  UniqueFd socket_;
  std::mutex send_mutex_;     // one frame at a time; guards send_broken_
  bool send_broken_ = false;  // a frame was cut off: what follows would be misread
  Partial partial_;
};

}  // namespace chiliad::ipc
