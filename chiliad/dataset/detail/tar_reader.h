#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chiliad/io/file.h"

namespace chiliad::dataset::detail {

/// A member that is not a folder.
struct TarMember {
  std::string name;     ///< bytes, never used as a path on disk
  uint64_t offset = 0;  ///< of the data
  uint64_t length = 0;
  std::string unusable;       ///< why its data cannot be used: a link, sparse, past the end; empty if it can
  bool after_damage = false;  ///< the first member found behind a damaged place
};

/// A place where the archive cannot be followed.
struct TarDamage {
  uint64_t offset = 0;
  uint64_t skipped = 0;  ///< bytes that belong to no member that was found
  std::string reason;
  std::string name;  ///< of the member whose header is cut; empty where unknown
};

struct TarListing {
  std::vector<TarMember> members;
  std::vector<TarDamage> damages;
};

/// Walks the headers: ustar, GNU long names and base-256 sizes, pax path and size. Behind a damaged place it
/// goes on with the next block that is a header with a right checksum. End blocks do not end it: what follows
/// them is read. Throws InvalidInput if the file is not a tar from its first byte (empty, gzip, anything
/// else).
[[nodiscard]] TarListing list_tar(const io::File& file);

}  // namespace chiliad::dataset::detail
