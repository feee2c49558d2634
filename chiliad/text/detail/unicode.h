#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace chiliad::text::detail {

enum class NormalForm { kC, kD, kKc, kKd };

/// `text` is UTF-8.
[[nodiscard]] std::string to_normal_form(NormalForm form, std::string text);
/// Each character for itself: a final sigma becomes a plain one.
[[nodiscard]] std::string lower_case(std::string_view text);
/// White_Space.
[[nodiscard]] bool is_space(uint32_t code_point);
/// What `\w` means in Unicode's recommendation for regular expressions (UTS 18).
[[nodiscard]] bool is_word(uint32_t code_point);

}  // namespace chiliad::text::detail
