#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace chiliad::dataset::detail {

/// A caption's place in its text part.
struct CaptionRange {
  uint32_t offset = 0;
  uint32_t length = 0;
  uint32_t language = 0;
};

/// The whole text, trimmed and without BOM, as one caption of unknown language; none if that is empty.
[[nodiscard]] std::vector<CaptionRange> plain_captions(std::string_view text);

/// Tux Paint's caption file: the first line is English, each other line is `lang.utf8=text`. Plain codes of
/// two or three letters are taken as they are, zh_CN as "zh"; other variants (pt_BR, zh_TW, sr@latin) are
/// left out. The first line of a language counts. Source: Tux Paint's documentation of stamps, "Text
/// descriptions".
[[nodiscard]] std::vector<CaptionRange> tuxpaint_captions(std::string_view text);

/// Whether a line of `text` reads `lang.utf8=...`.
[[nodiscard]] bool looks_like_tuxpaint(std::string_view text);

}  // namespace chiliad::dataset::detail
