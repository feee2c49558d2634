#include "chiliad/stepplan/image_spans.h"

#include <algorithm>

#include "chiliad/base/planted.h"

namespace chiliad::stepplan {

int64_t cut_outside_spans(int64_t length, std::span<const ImageSpan> spans, int64_t limit) {
  const int64_t cut = std::min(length, limit);
  if (planted_bug("cut_image_span")) return cut;
  for (const ImageSpan& span : spans) {
    if (span.first < cut && cut < span.first + span.count) return span.first;
  }
  return cut;
}

}  // namespace chiliad::stepplan
