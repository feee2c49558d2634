#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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
/// Control, format and private characters.
[[nodiscard]] bool is_other(uint32_t code_point);
/// Marks that take no room of their own: accents.
[[nodiscard]] bool is_accent(uint32_t code_point);
/// The punctuation of Unicode 8.0, which BERT's reference tokenizer knows, as a class of a regular
/// expression.
[[nodiscard]] std::string punctuation_class();
/// Extended grapheme clusters, views of `text`.
[[nodiscard]] std::vector<std::string_view> grapheme_clusters(std::string_view text);

}  // namespace chiliad::text::detail
