#pragma once

#include <algorithm>
#include <cstdint>

namespace chiliad::stepplan {

/// Item::num_tokens of a caption of `count` tokens, or of a document of so many, two at least, that is cut to
/// `sequence_length` positions.
[[nodiscard]] inline uint32_t item_tokens(uint32_t count, bool is_document, int64_t sequence_length) {
  if (!is_document) return std::max(1U, count);
  return static_cast<uint32_t>(std::min(int64_t{count} - 1, sequence_length));
}

}  // namespace chiliad::stepplan
