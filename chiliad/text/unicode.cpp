#include "chiliad/text/detail/unicode.h"

#include <fmt/format.h>
#include <unicode/brkiter.h>
#include <unicode/bytestream.h>
#include <unicode/locid.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>
#include <unicode/utext.h>

#include <memory>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/text/detail/utf8.h"

namespace chiliad::text::detail {
namespace {

const icu::Normalizer2& normalizer(NormalForm form) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* found = nullptr;
  switch (form) {
    case NormalForm::kC:
      found = icu::Normalizer2::getNFCInstance(status);
      break;
    case NormalForm::kD:
      found = icu::Normalizer2::getNFDInstance(status);
      break;
    case NormalForm::kKc:
      found = icu::Normalizer2::getNFKCInstance(status);
      break;
    case NormalForm::kKd:
      found = icu::Normalizer2::getNFKDInstance(status);
      break;
  }
  CHILIAD_CHECK(U_SUCCESS(status) && found != nullptr, "ICU: {}", u_errorName(status));
  return *found;
}

bool is_ascii(std::string_view text) {
  for (const char c : text) {
    if (static_cast<uint8_t>(c) >= 0x80) return false;
  }
  return true;
}

}  // namespace

std::string to_normal_form(NormalForm form, std::string text) {
  if (is_ascii(text)) return text;
  UErrorCode status = U_ZERO_ERROR;
  std::string out;
  icu::StringByteSink<std::string> sink(&out, static_cast<int32_t>(text.size()));
  normalizer(form).normalizeUTF8(0, {text.data(), static_cast<int32_t>(text.size())}, sink, nullptr, status);
  CHILIAD_CHECK(U_SUCCESS(status), "ICU: {}", u_errorName(status));
  return out;
}

std::string lower_case(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = next_character(text).length;
    if (length == 1) {
      const char c = text[0];
      out += c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
    } else {
      icu::UnicodeString one(static_cast<UChar32>(code_point(text.substr(0, length))));
      one.toLower(icu::Locale::getRoot()).toUTF8String(out);
    }
    text.remove_prefix(length);
  }
  return out;
}

bool is_space(uint32_t code_point) {
  return u_isUWhiteSpace(static_cast<UChar32>(code_point)) != 0;
}

bool is_word(uint32_t code_point) {
  const auto c = static_cast<UChar32>(code_point);
  constexpr uint32_t kCategories = U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK;
  return u_isUAlphabetic(c) != 0 || (U_GET_GC_MASK(c) & kCategories) != 0 ||
         u_hasBinaryProperty(c, UCHAR_JOIN_CONTROL) != 0;
}

bool is_other(uint32_t code_point) {
  constexpr uint32_t kCategories = U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK;
  return (U_GET_GC_MASK(static_cast<UChar32>(code_point)) & kCategories) != 0;
}

bool is_accent(uint32_t code_point) {
  return u_charType(static_cast<UChar32>(code_point)) == U_NON_SPACING_MARK;
}

std::string punctuation_class() {
  constexpr UChar32 kEnd = 0x110000;
  const auto is_punctuation = [](UChar32 c) {
    if (u_ispunct(c) == 0) return false;
    UVersionInfo age;
    u_charAge(c, age);
    return age[0] <= 8;
  };
  std::string ranges = "[!-/:-@\\[-`{-~";  // ASCII's symbols too
  for (UChar32 c = 0x80; c < kEnd; ++c) {
    if (!is_punctuation(c)) continue;
    const UChar32 first = c;
    while (c + 1 < kEnd && is_punctuation(c + 1)) ++c;
    ranges += fmt::format("\\x{{{:X}}}-\\x{{{:X}}}", first, c);
  }
  return ranges + "]";
}

std::vector<std::string_view> grapheme_clusters(std::string_view text) {
  UErrorCode status = U_ZERO_ERROR;
  const std::unique_ptr<icu::BreakIterator> breaks(
      icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), status));
  UText* const opened = utext_openUTF8(nullptr, text.data(), static_cast<int64_t>(text.size()), &status);
  const std::unique_ptr<UText, decltype(&utext_close)> utext(opened, &utext_close);
  CHILIAD_CHECK(U_SUCCESS(status), "ICU: {}", u_errorName(status));
  breaks->setText(utext.get(), status);
  CHILIAD_CHECK(U_SUCCESS(status), "ICU: {}", u_errorName(status));
  std::vector<std::string_view> clusters;
  size_t begin = 0;
  for (int32_t at = breaks->next(); at != icu::BreakIterator::DONE; at = breaks->next()) {
    const auto end = static_cast<size_t>(at);
    clusters.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return clusters;
}

}  // namespace chiliad::text::detail
