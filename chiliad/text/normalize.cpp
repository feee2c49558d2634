#include <algorithm>
#include <utility>

#include "chiliad/text/detail/steps.h"
#include "chiliad/text/detail/unicode.h"
#include "chiliad/text/detail/utf8.h"

namespace chiliad::text::detail {
namespace {

/// Calls visit(character, code point) for each.
template <typename Visit>
void for_characters(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    const std::string_view character = text.substr(0, next_character(text).length);
    visit(character, code_point(character));
    text.remove_prefix(character.size());
  }
}

std::string without_accents(const std::string& text) {
  std::string out;
  for_characters(text, [&](std::string_view character, uint32_t c) {
    if (!is_accent(c)) out += character;
  });
  return out;
}

std::string cleaned(const std::string& text) {
  std::string out;
  for_characters(text, [&](std::string_view character, uint32_t c) {
    const bool is_line = c == '\t' || c == '\n' || c == '\r';
    if (c == 0 || c == 0xFFFD || (!is_line && is_other(c))) return;
    out += is_line || is_space(c) ? " " : character;
  });
  return out;
}

// The blocks that BERT's code lists, with its gap from 2B820 to 2B91F.
bool is_ideograph(uint32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

std::string spaced_ideographs(const std::string& text) {
  std::string out;
  for_characters(text, [&](std::string_view character, uint32_t c) {
    if (!is_ideograph(c)) {
      out += character;
      return;
    }
    out += ' ';
    out += character;
    out += ' ';
  });
  return out;
}

std::string bert(const NormalizerStep& step, std::string text) {
  if (step.clean) text = cleaned(text);
  if (step.space_chinese) text = spaced_ideographs(text);
  if (step.strip_accents) text = without_accents(to_normal_form(NormalForm::kD, std::move(text)));
  if (step.lowercase) text = lower_case(text);
  return text;
}

std::string stripped(const NormalizerStep& step, const std::string& text) {
  size_t first = text.size();
  size_t end = 0;
  for_characters(text, [&](std::string_view character, uint32_t c) {
    if (is_space(c)) return;
    const auto at = static_cast<size_t>(character.data() - text.data());
    first = std::min(first, at);
    end = at + character.size();
  });
  if (first > end) return {};  // spaces alone
  if (!step.left) first = 0;
  if (!step.right) end = text.size();
  return text.substr(first, end - first);
}

std::string apply(const NormalizerStep& step, std::string text) {
  using Kind = NormalizerStep::Kind;
  switch (step.kind) {
    case Kind::kNfc:
      return to_normal_form(NormalForm::kC, std::move(text));
    case Kind::kNfd:
      return to_normal_form(NormalForm::kD, std::move(text));
    case Kind::kNfkc:
      return to_normal_form(NormalForm::kKc, std::move(text));
    case Kind::kNfkd:
      return to_normal_form(NormalForm::kKd, std::move(text));
    case Kind::kLowercase:
      return lower_case(text);
    case Kind::kReplace:
      return step.pattern.replace_all(text, step.content);
    case Kind::kPrepend:
      return text.empty() ? text : step.content + text;
    case Kind::kStrip:
      return stripped(step, text);
    case Kind::kStripAccents:
      return without_accents(text);
    case Kind::kPrecompiled:
      return step.charsmap->normalize(text);
    case Kind::kBert:
      return bert(step, std::move(text));
  }
  return text;
}

}  // namespace

std::string normalize(const std::vector<NormalizerStep>& steps, std::string text) {
  for (const NormalizerStep& step : steps) text = apply(step, std::move(text));
  return text;
}

}  // namespace chiliad::text::detail
