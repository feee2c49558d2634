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

/// A started collective. Tensors given to it stay untouched until wait() has returned.
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
  /// flat: [sum of counts]; rank r's part is given by r and received by all, in place.
  [[nodiscard]] virtual std::unique_ptr<Work> all_gather_parts(at::Tensor flat,
                                                               std::span<const int64_t> counts) = 0;

  [[nodiscard]] virtual Traffic traffic() const = 0;
  /// Leaves the group; explicit, since destructors at different times hang peers.
  virtual void close() = 0;
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
