#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>

namespace chiliad::comm::detail {

/// The memory of one rank that its peers read: a part that is given out for good, and a ring for copies of
/// inputs that lie elsewhere. Knows which bytes belong to calls that peers may still read. One thread.
class OwnRegion {
 public:
  OwnRegion() = default;
  /// The first `kept` bytes are given out by keep().
  OwnRegion(std::span<std::byte> memory, size_t kept) : memory_(memory), kept_(kept), cursor_(kept) {}

  /// Bytes for good, 64-aligned; null where there are not so many left.
  [[nodiscard]] std::byte* keep(size_t num_bytes);
  [[nodiscard]] size_t kept_bytes() const { return kept_used_; }
  /// Where the bytes lie in the region, if they do.
  [[nodiscard]] std::optional<size_t> offset_of(const void* data, size_t num_bytes) const;
  /// The largest copy that the ring can hold.
  [[nodiscard]] size_t ring_bytes() const { return memory_.size() - kept_; }

  /// Room in the ring for `num_bytes` (at most ring_bytes()). Where calls are in its way, `release_oldest` is
  /// called until the first of them is gone.
  [[nodiscard]] size_t make_room(size_t num_bytes, const std::function<void()>& release_oldest);
  [[nodiscard]] std::byte* at(size_t offset) const { return memory_.data() + offset; }

  /// Peers may read these bytes until the call is released.
  void post(uint32_t call, size_t begin, size_t end) { posted_.push_back({call, begin, end}); }
  [[nodiscard]] bool is_posted(size_t begin, size_t end) const;
  [[nodiscard]] size_t num_posted() const { return posted_.size(); }
  [[nodiscard]] uint32_t oldest() const { return posted_.front().call; }
  void release_oldest() { posted_.pop_front(); }

 private:
  struct Posted {
    uint32_t call;
    size_t begin;
    size_t end;
  };

  std::span<std::byte> memory_;
  size_t kept_ = 0;
  size_t kept_used_ = 0;
  size_t cursor_ = 0;  // in the ring
  std::deque<Posted> posted_;
};

}  // namespace chiliad::comm::detail
