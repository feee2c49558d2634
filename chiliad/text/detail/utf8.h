#pragma once

#include <cstddef>
#include <string_view>

namespace chiliad::text::detail {

inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// One step of reading UTF-8: how many bytes it takes, and whether they are one character. A broken sequence
/// takes its maximal valid prefix (at least one byte) and counts as one U+FFFD, as the Unicode Standard
/// recommends.
struct Utf8Step {
  size_t length = 0;
  bool valid = false;
};

/// `text` is not empty.
[[nodiscard]] Utf8Step next_character(std::string_view text);

}  // namespace chiliad::text::detail
