#pragma once

#include <cstdint>
#include <span>

namespace chiliad::stepplan {

/// Positions of a document that belong to one picture: [first, first + count).
struct ImageSpan {
  int64_t first = 0;
  int64_t count = 0;
};

/// How many of a document's `length` positions are kept where at most `limit` may be: the cut never lies
/// inside of a picture, so it moves to its first position. `spans` in order, without overlap.
[[nodiscard]] int64_t cut_outside_spans(int64_t length, std::span<const ImageSpan> spans, int64_t limit);

}  // namespace chiliad::stepplan
