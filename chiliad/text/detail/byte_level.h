#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace chiliad::text::detail {

/// The printable characters that stand for bytes in byte-level vocabularies: a byte that is printable in
/// Latin-1 is itself, the others are U+0100 and up. Source: GPT-2's encoder.
[[nodiscard]] std::string bytes_to_characters(std::string_view bytes);
/// Nothing if some character stands for no byte.
[[nodiscard]] std::optional<std::string> characters_to_bytes(std::string_view characters);

}  // namespace chiliad::text::detail
