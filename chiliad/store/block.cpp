#include "chiliad/store/block.h"

#include <span>

namespace chiliad::store {

Digest BlockSpec::key() const {
  Hasher hasher;
  hasher.add("block").add(object).add(offset).add(length);
  for (const PartCheck& part : parts) hasher.add(part.offset).add(part.length).add(part.checksum);
  return hasher.digest();
}

int64_t first_wrong_part(const BlockSpec& spec, std::span<const std::byte> bytes) {
  for (size_t i = 0; i < spec.parts.size(); ++i) {
    const PartCheck& part = spec.parts[i];
    const int64_t at = part.offset - spec.offset;
    if (at < 0 || part.length < 0 || at + part.length > static_cast<int64_t>(bytes.size()))
      return static_cast<int64_t>(i);
    const auto own = bytes.subspan(static_cast<size_t>(at), static_cast<size_t>(part.length));
    if (hash64(own) != part.checksum) return static_cast<int64_t>(i);
  }
  return -1;
}

}  // namespace chiliad::store
