#include "chiliad/dataset/detail/read_part.h"

#include <fmt/core.h>

#include "chiliad/base/error.h"
#include "chiliad/base/hash.h"
#include "chiliad/io/file.h"

namespace chiliad::dataset::detail {

std::vector<std::byte> read_part(const index::Index& index, const index::Shard& shard,
                                 const index::Part& part, index::PartSource* source) {
  std::vector<std::byte> bytes(part.length);
  if (source != nullptr) {
    bytes.resize(static_cast<size_t>(source->read(shard, part, bytes)));
  } else {
    io::File::open_read(index.part_path(shard, part)).read_at(static_cast<int64_t>(part.offset), bytes);
  }
  if (hash64(bytes) == part.checksum) return bytes;
  throw CorruptData(
      index.part_path(shard, part).string(),
      fmt::format("{} bytes at {} are not those that were indexed. Index again", part.length, part.offset));
}

}  // namespace chiliad::dataset::detail
