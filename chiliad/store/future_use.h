#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "chiliad/base/hash.h"

namespace chiliad::store {

struct DigestHash {
  size_t operator()(const Digest& digest) const { return static_cast<size_t>(digest.low); }
};

/// When blocks are used, as far as a plan was read. Thread-safe.
class FutureUse {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  /// `keys` are used in `step`; steps come in order.
  void append(int64_t step, const std::vector<Digest>& keys);
  /// Steps before `step` are over. Going back is ignored.
  void reached(int64_t step);
  /// First step from the one reached on that uses the block; kNever: none that is known.
  [[nodiscard]] int64_t next_use(const Digest& key) const;
  [[nodiscard]] int64_t now() const;
  /// Forgets all, for another plan.
  void clear();

 private:
  /// Uses close together count as one: the block is in use between them.
  static constexpr int64_t kClose = 8;
  struct Run {
    int64_t first = 0;
    int64_t last = 0;
  };
  mutable std::mutex mutex_;  // guards the rest
  int64_t now_ = 0;
  std::unordered_map<Digest, std::deque<Run>, DigestHash> runs_;
  std::deque<std::pair<int64_t, Digest>> endings_;  // one a run, with a step of it, to forget it then
};

}  // namespace chiliad::store
