#pragma once

#include <algorithm>
#include <cstdint>

namespace chiliad::spec {

/// Tokens whose logits exist at once in the loss of a language model, for so many rows of the vocabulary on a
/// rank: about 2^24 logits, 16 to 4096 tokens.
[[nodiscard]] inline int64_t loss_chunk(int64_t vocabulary) {
  return std::clamp<int64_t>((int64_t{1} << 24) / vocabulary, 16, 4096);
}

}  // namespace chiliad::spec
