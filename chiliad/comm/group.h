#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "chiliad/base/clock.h"

namespace chiliad::comm {

/// Bytes that this rank put on the wire, counted from the calls.
struct Traffic {
  int64_t bytes_sent = 0;
  int64_t num_calls = 0;
};

/// How far the bytes of a group go.
enum class Tier { kSelf, kMachine, kNetwork };
[[nodiscard]] const char* tier_name(Tier tier);  ///< "self", "machine", "network"

/// A started collective. Tensors given to it stay untouched until wait() has returned; inputs that lie in
/// memory of Group::share, until await_read.
class Work {
 public:
  virtual ~Work() = default;
  /// Throws PeerLost naming the group after the deadline, or when a peer has gone.
  virtual void wait() = 0;
};

/// Ranks that communicate. Every rank makes the same calls in the same order, from one thread. Calls return
/// at once; the group runs them in order. Backends: gloo/ (TCP), shm/ (one machine), solo/ (one rank), all
/// under tests/contract/group.
class Group {
 public:
  virtual ~Group() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  /// in: parts for rank 0, 1, ... of in_counts elements each; out: parts from rank 0, 1, ... of out_counts
  /// elements.
  [[nodiscard]] virtual std::unique_ptr<Work> all_to_all(at::Tensor out, std::span<const int64_t> out_counts,
                                                         at::Tensor in,
                                                         std::span<const int64_t> in_counts) = 0;
  /// out: [size * n], from every rank its `in` [n], in rank order.
  [[nodiscard]] virtual std::unique_ptr<Work> all_gather(at::Tensor out, at::Tensor in) = 0;
  /// out: [sum of counts], the parts of ranks 0, 1, ...; in: this rank's, which may be its place in `out`.
  [[nodiscard]] virtual std::unique_ptr<Work> all_gather_parts(at::Tensor out,
                                                               std::span<const int64_t> counts,
                                                               at::Tensor in) = 0;
  /// in: [sum of counts], parts for ranks 0, 1, ..., fp32 or bf16; out: [counts[rank]], fp32: the sum of all
  /// ranks' parts for this one, added in rank order in fp32, the same bits in every run. accumulate: added to
  /// what `out` holds. Here: an exchange, and sums by the waiting thread.
  [[nodiscard]] virtual std::unique_ptr<Work> reduce_scatter(at::Tensor out, at::Tensor in,
                                                             std::span<const int64_t> counts,
                                                             bool accumulate);

  /// Bytes of memory, zeroed, that peers read in place: inputs that lie there are not copied first. It lives
  /// as long as a tensor has it. Undefined where the group has no such memory, or not enough.
  [[nodiscard]] virtual at::Tensor share(int64_t num_bytes);
  /// Bytes that share() has given.
  [[nodiscard]] virtual int64_t shared_bytes() const { return 0; }
  /// Waits until peers have read what calls took from this memory: it may be written again.
  virtual void await_read(const at::Tensor& memory);

  [[nodiscard]] virtual Traffic traffic() const = 0;
  [[nodiscard]] virtual Tier tier() const { return Tier::kNetwork; }
  /// Leaves the group; explicit, since destructors at different times hang peers.
  virtual void close() = 0;

 private:
  std::vector<at::Tensor> scratch_;  // of reduce_scatter, used again
};

/// Who is in a group: ranks of the job, ascending, and the place of this one among them.
struct Membership {
  std::string name;  ///< of the group, for messages
  std::vector<int> members;
  int rank = 0;
  [[nodiscard]] int size() const { return static_cast<int>(members.size()); }
  [[nodiscard]] int own() const { return members[static_cast<size_t>(rank)]; }
};

[[nodiscard]] std::unique_ptr<Group> make_solo_group();

/// Sums of `values` over all ranks, added in rank order: the same bits everywhere.
[[nodiscard]] std::vector<double> sum_over_ranks(Group& group, std::span<const double> values);
/// Every rank's text, in rank order.
[[nodiscard]] std::vector<std::string> gather_texts(Group& group, const std::string& text);

}  // namespace chiliad::comm
