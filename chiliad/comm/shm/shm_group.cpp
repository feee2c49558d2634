// Collectives over memory that all ranks of a machine map. For the k-th call of the group:
// 1. a rank writes slot k (where each peer's part lies in its own region, and its length) and raises `posted`
//    to k; an input that does not lie in the region is copied there first
// 2. wait() of a peer sleeps until `posted` is at least k, compares the length with what it expects, copies
//    its part out or adds it up, and raises its own `taken` to k
// 3. memory of the region is written again when `taken` of all peers is at least k
// Each word has one writer; raising is a release, reading an acquire.
#include "chiliad/comm/shm/shm_group.h"

#include <ATen/ATen.h>
#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/comm/part_sum.h"
#include "chiliad/comm/shm/futex.h"
#include "chiliad/comm/shm/own_region.h"

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

/// Sums the parts of all peers.
struct Sum {
  at::Tensor out;
  PartType type;
  size_t num_bytes;  // of a part
  bool accumulate;
};

struct Pending {
  uint32_t number = 0;
  std::vector<Copy> copies = {};
  std::optional<Sum> sum = {};
  std::vector<at::Tensor> kept = {};  // outputs; alive until copied
};

std::byte* data_of(at::Tensor& tensor) {
  return static_cast<std::byte*>(tensor.mutable_data_ptr());
}

class SharedMemoryGroup final : public Group {
 public:
  SharedMemoryGroup(std::shared_ptr<const ipc::SharedMemory> memory, Membership membership, size_t kept_bytes,
                    Nanoseconds timeout)
      : memory_(std::move(memory)),
        membership_(std::move(membership)),
        rank_(membership_.rank),
        size_(membership_.size()),
        timeout_(timeout) {
    const size_t rank_bytes = memory_->bytes().size() / static_cast<size_t>(size_);
    CHILIAD_CHECK(size_ <= kMaxSharedRanks && rank_bytes > state_bytes(size_));
    region_bytes_ = (rank_bytes - state_bytes(size_)) / 64 * 64;
    own_ = detail::OwnRegion({region(rank_), region_bytes_}, kept_bytes);
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
    return post(in, parts, {.copies = std::move(copies), .kept = {out}});
  }

  std::unique_ptr<Work> all_gather(at::Tensor out, at::Tensor in) override {
    const auto bytes = static_cast<size_t>(in.nbytes());
    traffic_.bytes_sent += static_cast<int64_t>(bytes) * (size_ - 1);
    std::vector<Copy> copies;
    for (int peer = 0; peer < size_; ++peer)
      copies.push_back({peer, data_of(out) + static_cast<size_t>(peer) * bytes, bytes});
    return post(in, {}, {.copies = std::move(copies), .kept = {out}});
  }

  std::unique_ptr<Work> all_gather_parts(at::Tensor out, std::span<const int64_t> counts,
                                         at::Tensor in) override {
    const auto element = static_cast<size_t>(out.element_size());
    CHILIAD_CHECK_EQ(in.numel(), counts[static_cast<size_t>(rank_)]);
    std::vector<Copy> copies;
    std::byte* to = data_of(out);
    for (int peer = 0; peer < size_; ++peer) {
      const size_t bytes = static_cast<size_t>(counts[static_cast<size_t>(peer)]) * element;
      if (peer != rank_ || to != in.const_data_ptr()) copies.push_back({peer, to, bytes});
      to += bytes;
    }
    traffic_.bytes_sent += static_cast<int64_t>(in.nbytes()) * (size_ - 1);
    return post(in, {}, {.copies = std::move(copies), .kept = {out}});
  }

  std::unique_ptr<Work> reduce_scatter(at::Tensor out, at::Tensor in, std::span<const int64_t> counts,
                                       bool accumulate) override {
    const auto element = static_cast<size_t>(in.element_size());
    const int64_t mine = counts[static_cast<size_t>(rank_)];
    CHILIAD_CHECK_EQ(out.numel(), mine);
    std::vector<size_t> parts;
    for (const int64_t count : counts) parts.push_back(static_cast<size_t>(count) * element);
    traffic_.bytes_sent += (in.numel() - mine) * in.element_size();
    return post(in, parts, {.sum = Sum{out, part_type(in), static_cast<size_t>(mine) * element, accumulate}});
  }

  at::Tensor share(int64_t num_bytes) override {
    std::byte* const data = own_.keep(static_cast<size_t>(num_bytes));
    if (data == nullptr) return {};
    return at::from_blob(
        data, {num_bytes}, [memory = memory_](void*) {}, at::kByte);
  }

  [[nodiscard]] int64_t shared_bytes() const override { return static_cast<int64_t>(own_.kept_bytes()); }

  void await_read(const at::Tensor& memory) override {
    const auto begin = own_.offset_of(memory.const_data_ptr(), memory.nbytes());
    if (!begin.has_value()) return;
    while (own_.is_posted(*begin, *begin + memory.nbytes())) await_oldest();
  }

  [[nodiscard]] Traffic traffic() const override { return traffic_; }
  [[nodiscard]] Tier tier() const override { return Tier::kMachine; }
  void close() override { pending_.clear(); }

  /// Finishes calls up to `number`, in order.
  void finish(uint32_t number) {
    while (!pending_.empty() && reached(number, pending_.front().number)) {
      take(pending_.front());
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
  std::unique_ptr<Work> post(const at::Tensor& in, const std::vector<size_t>& parts, Pending pending) {
    const at::Tensor dense = in.contiguous();
    const auto bytes = static_cast<size_t>(dense.nbytes());
    const uint32_t number = ++calls_;
    ++traffic_.num_calls;
    const size_t begin = place(dense, bytes);
    own_.post(number, begin, begin + bytes);
    Part* const out = slot(rank_, number);
    size_t offset = begin;
    for (size_t peer = 0; peer < static_cast<size_t>(size_); ++peer) {
      out[peer] = {offset, parts.empty() ? bytes : parts[peer]};
      if (!parts.empty()) offset += parts[peer];
    }
    auto& posted = state(rank_).posted;
    posted.store(number, std::memory_order_release);
    detail::futex_wake_all(posted);
    pending.number = number;
    pending_.push_back(std::move(pending));
    return std::make_unique<SharedWork>(*this, number);
  }

  /// Where an input lies in the own region; copied there if it does not yet.
  size_t place(const at::Tensor& in, size_t bytes) {
    release_read();
    while (own_.num_posted() + 1 >= num_slots(size_)) await_oldest();
    if (bytes == 0) return 0;
    const auto known = own_.offset_of(in.const_data_ptr(), bytes);
    if (known.has_value()) return *known;
    if (bytes > own_.ring_bytes()) {
      throw InvalidInput("parallel.transport",
                         fmt::format("a transfer of {} bytes does not fit the shared memory of a rank "
                                     "({} bytes). Set parallel.transport: gloo",
                                     bytes, own_.ring_bytes()));
    }
    const size_t begin = own_.make_room(bytes, [this] { await_oldest(); });
    std::memcpy(own_.at(begin), in.const_data_ptr(), bytes);
    return begin;
  }

  void take(const Pending& pending) {
    for (const auto& copy : pending.copies) {
      const std::byte* const from = find(pending.number, copy.peer, copy.num_bytes);
      if (copy.num_bytes > 0) std::memcpy(copy.to, from, copy.num_bytes);
    }
    if (!pending.sum.has_value()) return;
    const Sum& sum = *pending.sum;
    std::vector<const void*> parts;
    for (int peer = 0; peer < size_; ++peer) parts.push_back(find(pending.number, peer, sum.num_bytes));
    at::Tensor out = sum.out;
    sum_parts(parts, sum.type, out.numel(), out.mutable_data_ptr<float>(), sum.accumulate);
  }

  /// A peer's part for this rank, once it is there.
  const std::byte* find(uint32_t number, int peer, size_t num_bytes) {
    await(peer, state(peer).posted, number, "start");
    const Part& part = slot(peer, number)[rank_];
    if (part.num_bytes != num_bytes) differing(number, peer, num_bytes, part.num_bytes);
    return region(peer) + part.begin;
  }

  /// The ranks do not make the same calls.
  [[noreturn]] void differing(uint32_t number, int peer, size_t expected, size_t got) const {
    throw InternalError(
        fmt::format("rank {}", membership_.own()),
        fmt::format("collective {} of group {}: expected {} bytes from rank {}, got {}", number,
                    membership_.name, expected, membership_.members[static_cast<size_t>(peer)], got));
  }

  void release_read() {
    while (own_.num_posted() > 0) {
      for (int peer = 0; peer < size_; ++peer) {
        const uint32_t taken =
            peer == rank_ ? own_taken() : state(peer).taken.load(std::memory_order_acquire);
        if (!reached(taken, own_.oldest())) return;
      }
      own_.release_oldest();
    }
  }

  [[nodiscard]] uint32_t own_taken() const { return state(rank_).taken.load(std::memory_order_relaxed); }

  void await_oldest() {
    const uint32_t number = own_.oldest();
    finish(number);
    for (int peer = 0; peer < size_; ++peer) await(peer, state(peer).taken, number, "finish");
    own_.release_oldest();
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
  detail::OwnRegion own_;
  std::deque<Pending> pending_;  // calls of this rank that were not waited for
  Traffic traffic_;
};

}  // namespace

size_t shared_group_bytes(int size, const GroupRequest& request) {
  const auto bytes = static_cast<size_t>(request.shared_bytes + request.kept_bytes);
  return static_cast<size_t>(size) * (state_bytes(size) + (bytes + 4095) / 4096 * 4096);
}

std::unique_ptr<Group> make_shared_memory_group(std::shared_ptr<const ipc::SharedMemory> memory,
                                                Membership membership, int64_t kept_bytes,
                                                Nanoseconds timeout) {
  return std::make_unique<SharedMemoryGroup>(std::move(memory), std::move(membership),
                                             static_cast<size_t>(kept_bytes), timeout);
}

}  // namespace chiliad::comm
