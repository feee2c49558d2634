#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
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

/// Of one valid character.
[[nodiscard]] uint32_t code_point(std::string_view character);
void append_utf8(std::string& out, uint32_t code_point);

/// `text` with U+FFFD for each broken sequence; says whether there was one.
[[nodiscard]] bool replace_broken(std::string_view text, std::string& out);

}  // namespace chiliad::text::detail
