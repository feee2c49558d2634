// Collectives over memory that all ranks of a machine map. For the k-th call of the group:
// 1. a rank takes room in its own region (waiting until its peers have read what lay there), copies its
//    input in, writes slot k (where each peer's part lies, and its length) and raises `posted` to k
// 2. wait() of a peer sleeps until `posted` is at least k, compares the length with what it expects, copies
//    its part out, and raises its own `taken` to k
// Each word has one writer; raising is a release, reading an acquire.
#include "chiliad/comm/shm/shm_group.h"

#include <ATen/ATen.h>
#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <deque>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/comm/shm/futex.h"

namespace chiliad::comm {
namespace {

constexpr int kSpins = 4000;

/// Followed by num_slots(size) slots of one Part for each peer.
struct RankState {
  alignas(64) std::atomic<uint32_t> posted;
  alignas(64) std::atomic<uint32_t> taken;
};

/// What a call has for one peer, in the poster's region.
struct Part {
  uint64_t begin;
  uint64_t num_bytes;
};

/// Calls in flight. The memory of all slots together grows with the square of the ranks, so large groups have
/// fewer.
constexpr size_t num_slots(int size) {
  return std::bit_floor(std::clamp<size_t>(4096 / static_cast<size_t>(size), 16, 256));
}

constexpr size_t state_bytes(int size) {
  return (sizeof(RankState) + num_slots(size) * static_cast<size_t>(size) * sizeof(Part) + 4095) / 4096 *
         4096;
}

bool reached(uint32_t counter, uint32_t wanted) {
  return static_cast<int32_t>(counter - wanted) >= 0;
}

/// Copies one peer's part to its place.
struct Copy {
  int peer;
  std::byte* to;
  size_t num_bytes;
};

struct Pending {
  uint32_t number = 0;
  std::vector<Copy> copies;
  std::vector<at::Tensor> kept;  // outputs; alive until copied
};

struct Posted {
  uint32_t number;
  size_t begin;
  size_t end;
};

std::byte* data_of(at::Tensor& tensor) {
  return static_cast<std::byte*>(tensor.mutable_data_ptr());
}

class SharedMemoryGroup final : public Group {
 public:
  SharedMemoryGroup(std::shared_ptr<const ipc::SharedMemory> memory, Membership membership,
                    Nanoseconds timeout)
      : memory_(std::move(memory)),
        membership_(std::move(membership)),
        rank_(membership_.rank),
        size_(membership_.size()),
        timeout_(timeout) {
    const size_t rank_bytes = memory_->bytes().size() / static_cast<size_t>(size_);
    CHILIAD_CHECK(size_ <= kMaxSharedRanks && rank_bytes > state_bytes(size_));
    region_bytes_ = (rank_bytes - state_bytes(size_)) / 64 * 64;
  }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }

  std::unique_ptr<Work> all_to_all(at::Tensor out, std::span<const int64_t> out_counts, at::Tensor in,
                                   std::span<const int64_t> in_counts) override {
    const auto element = static_cast<size_t>(in.element_size());
    std::vector<size_t> parts;
    for (const int64_t count : in_counts) parts.push_back(static_cast<size_t>(count) * element);
    traffic_.bytes_sent += (in.numel() - in_counts[static_cast<size_t>(rank_)]) * in.element_size();
    std::vector<Copy> copies;
    std::byte* to = data_of(out);
    for (int peer = 0; peer < size_; ++peer) {
      const size_t bytes = static_cast<size_t>(out_counts[static_cast<size_t>(peer)]) * element;
      copies.push_back({peer, to, bytes});
      to += bytes;
    }
    return post(in, parts, std::move(copies), {out});
  }

  std::unique_ptr<Work> all_gather(at::Tensor out, at::Tensor in) override {
    const auto bytes = static_cast<size_t>(in.nbytes());
    traffic_.bytes_sent += static_cast<int64_t>(bytes) * (size_ - 1);
    std::vector<Copy> copies;
    for (int peer = 0; peer < size_; ++peer)
      copies.push_back({peer, data_of(out) + static_cast<size_t>(peer) * bytes, bytes});
    return post(in, {}, std::move(copies), {out});
  }

  std::unique_ptr<Work> all_gather_parts(at::Tensor flat, std::span<const int64_t> counts) override {
    const auto element = static_cast<size_t>(flat.element_size());
    std::vector<Copy> copies;
    std::byte* to = data_of(flat);
    int64_t begin = 0;
    int64_t own_begin = 0;
    for (int peer = 0; peer < size_; ++peer) {
      const int64_t count = counts[static_cast<size_t>(peer)];
      if (peer == rank_) {
        own_begin = begin;
      } else {
        copies.push_back({peer, to, static_cast<size_t>(count) * element});
      }
      to += static_cast<size_t>(count) * element;
      begin += count;
    }
    const at::Tensor own = flat.narrow(0, own_begin, counts[static_cast<size_t>(rank_)]);
    traffic_.bytes_sent += static_cast<int64_t>(own.nbytes()) * (size_ - 1);
    return post(own, {}, std::move(copies), {flat});
  }

  [[nodiscard]] Traffic traffic() const override { return traffic_; }
  void close() override { pending_.clear(); }

  /// Finishes calls up to `number`, in order.
  void finish(uint32_t number) {
    while (!pending_.empty() && reached(number, pending_.front().number)) {
      for (const auto& copy : pending_.front().copies) take(pending_.front().number, copy);
      auto& taken = state(rank_).taken;
      taken.store(pending_.front().number, std::memory_order_release);
      detail::futex_wake_all(taken);
      pending_.pop_front();
    }
  }

 private:
  class SharedWork final : public Work {
   public:
    SharedWork(SharedMemoryGroup& group, uint32_t number) : group_(group), number_(number) {}
    void wait() override { group_.finish(number_); }

   private:
    SharedMemoryGroup& group_;
    uint32_t number_;
  };

  [[nodiscard]] RankState& state(int rank) const {
    return *reinterpret_cast<RankState*>(memory_->bytes().data() +
                                         static_cast<size_t>(rank) * state_bytes(size_));
  }
  /// The parts of a call, one for each peer.
  [[nodiscard]] Part* slot(int rank, uint32_t number) const {
    auto* parts = reinterpret_cast<Part*>(&state(rank) + 1);
    return parts + number % num_slots(size_) * static_cast<size_t>(size_);
  }
  [[nodiscard]] std::byte* region(int rank) const {
    return memory_->bytes().data() + static_cast<size_t>(size_) * state_bytes(size_) +
           static_cast<size_t>(rank) * region_bytes_;
  }

  /// `parts`: bytes for each peer, one after the other in `in`; empty: all of it for everybody.
  std::unique_ptr<Work> post(const at::Tensor& in, const std::vector<size_t>& parts, std::vector<Copy> copies,
                             std::vector<at::Tensor> kept) {
    const at::Tensor dense = in.contiguous();
    const auto bytes = static_cast<size_t>(dense.nbytes());
    const uint32_t number = ++calls_;
    ++traffic_.num_calls;
    const size_t begin = make_room(bytes, number);
    if (bytes > 0) std::memcpy(region(rank_) + begin, dense.const_data_ptr(), bytes);
    Part* const out = slot(rank_, number);
    size_t offset = begin;
    for (size_t peer = 0; peer < static_cast<size_t>(size_); ++peer) {
      out[peer] = {offset, parts.empty() ? bytes : parts[peer]};
      if (!parts.empty()) offset += parts[peer];
    }
    auto& posted = state(rank_).posted;
    posted.store(number, std::memory_order_release);
    detail::futex_wake_all(posted);
    pending_.push_back({number, std::move(copies), std::move(kept)});
    return std::make_unique<SharedWork>(*this, number);
  }

  void take(uint32_t number, const Copy& copy) {
    await(copy.peer, state(copy.peer).posted, number, "start");
    const Part& part = slot(copy.peer, number)[rank_];
    if (part.num_bytes != copy.num_bytes) differing(number, copy, part);
    if (copy.num_bytes == 0) return;
    std::memcpy(copy.to, region(copy.peer) + part.begin, copy.num_bytes);
  }

  /// The ranks do not make the same calls.
  [[noreturn]] void differing(uint32_t number, const Copy& copy, const Part& part) const {
    throw InternalError(fmt::format("rank {}", membership_.own()),
                        fmt::format("collective {} of group {}: expected {} bytes from rank {}, got {}",
                                    number, membership_.name, copy.num_bytes,
                                    membership_.members[static_cast<size_t>(copy.peer)], part.num_bytes));
  }

  /// Where `bytes` may be written: after what is still unread, or from the start again.
  size_t make_room(size_t bytes, uint32_t number) {
    const size_t needed = (bytes + 63) / 64 * 64;
    if (needed > region_bytes_) {
      throw InvalidInput("parallel.transport",
                         fmt::format("a transfer of {} bytes does not fit the shared memory of a rank "
                                     "({} bytes). Set parallel.transport: gloo",
                                     bytes, region_bytes_));
    }
    release_read();
    while (posted_.size() + 1 >= num_slots(size_)) await_oldest();
    if (posted_.empty()) cursor_ = 0;
    if (cursor_ + needed > region_bytes_) cursor_ = 0;
    while (overlaps(cursor_, cursor_ + needed)) await_oldest();
    const size_t begin = cursor_;
    posted_.push_back({number, begin, begin + needed});
    cursor_ += needed;
    return begin;
  }

  [[nodiscard]] bool overlaps(size_t begin, size_t end) const {
    for (const auto& posted : posted_) {
      if (begin < posted.end && posted.begin < end) return true;
    }
    return false;
  }

  void release_read() {
    while (!posted_.empty()) {
      for (int peer = 0; peer < size_; ++peer) {
        const uint32_t taken =
            peer == rank_ ? own_taken() : state(peer).taken.load(std::memory_order_acquire);
        if (!reached(taken, posted_.front().number)) return;
      }
      posted_.pop_front();
    }
  }

  [[nodiscard]] uint32_t own_taken() const { return state(rank_).taken.load(std::memory_order_relaxed); }

  void await_oldest() {
    const uint32_t number = posted_.front().number;
    finish(number);
    for (int peer = 0; peer < size_; ++peer) await(peer, state(peer).taken, number, "finish");
    posted_.pop_front();
  }

  void await(int peer, const std::atomic<uint32_t>& word, uint32_t number, const char* what) const {
    for (int spin = 0; spin < kSpins; ++spin) {
      if (reached(word.load(std::memory_order_acquire), number)) return;
      _mm_pause();
    }
    const Nanoseconds start = clock_.now();
    for (;;) {
      const uint32_t seen = word.load(std::memory_order_acquire);
      if (reached(seen, number)) return;
      if (clock_.now() - start > timeout_) {
        const int lost = membership_.members[static_cast<size_t>(peer)];
        throw PeerLost(fmt::format("rank {}", membership_.own()),
                       fmt::format("rank {} did not {} collective {} of group {} within {:.1f} s", lost, what,
                                   number, membership_.name, to_seconds(timeout_)),
                       lost);
      }
      detail::futex_sleep(word, seen);
    }
  }

  // Shared with the groups of ranks that are threads of this process, until the last is gone.
  std::shared_ptr<const ipc::SharedMemory> memory_;
  Membership membership_;
  int rank_;
  int size_;
  Nanoseconds timeout_;
  size_t region_bytes_ = 0;  // each rank's own room
  SystemClock clock_;
  uint32_t calls_ = 0;
  size_t cursor_ = 0;
  std::deque<Pending> pending_;  // calls of this rank that were not waited for
  std::deque<Posted> posted_;    // room in this rank's region that peers may still read
  Traffic traffic_;
};

}  // namespace

size_t shared_group_bytes(int size, int64_t bytes_per_rank) {
  return static_cast<size_t>(size) *
         (state_bytes(size) + (static_cast<size_t>(bytes_per_rank) + 4095) / 4096 * 4096);
}

std::unique_ptr<Group> make_shared_memory_group(std::shared_ptr<const ipc::SharedMemory> memory,
                                                Membership membership, Nanoseconds timeout) {
  return std::make_unique<SharedMemoryGroup>(std::move(memory), std::move(membership), timeout);
}

}  // namespace chiliad::comm
