#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "chiliad/base/hash.h"

namespace chiliad::store {

/// A range of an object whose checksum (xxh3-64) is known beforehand.
struct PartCheck {
  int64_t offset = 0;  ///< in the object
  int64_t length = 0;
  uint64_t checksum = 0;
};

/// A range of an object that is fetched, kept and dropped as a whole.
struct BlockSpec {
  std::string store;  ///< root, as StoreFactory takes it
  std::string object;
  int64_t offset = 0;
  int64_t length = 0;
  std::vector<PartCheck> parts{};  ///< inside [offset, offset + length); what shows damage at once

  /// Names the bytes: object, range and checksums, not the store, so that a copy elsewhere is the same block.
  [[nodiscard]] Digest key() const;
};

/// First of `parts` that `bytes`, the block's from its start, do not have; -1: all are right.
[[nodiscard]] int64_t first_wrong_part(const BlockSpec& spec, std::span<const std::byte> bytes);

}  // namespace chiliad::store
