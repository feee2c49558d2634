#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "chiliad/index/columns.h"

namespace chiliad::index {

/// Where the bytes of parts come from: files of this machine, or a store through the node's block cache.
/// Thread-safe.
class PartSource {
 public:
  virtual ~PartSource() = default;
  /// Fills `out`, of the part's length, with what is there, unverified. Returns how many bytes there were:
  /// fewer only where the file ends. Waits for trouble to pass within its deadline, then throws Unavailable;
  /// what a user must mend is InvalidInput.
  [[nodiscard]] virtual int64_t read(const Shard& shard, const Part& part, std::span<std::byte> out) = 0;
  /// The part's bytes were wrong: the next read does not come from where they were kept.
  virtual void distrust(const Shard& shard, const Part& part) = 0;
  /// Says, for a refusal, that the file is not the one that was indexed; empty where nothing is known.
  [[nodiscard]] virtual std::string change_note(const Shard& shard, const Part& part) = 0;
};

}  // namespace chiliad::index
