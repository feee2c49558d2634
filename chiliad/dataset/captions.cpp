#include "chiliad/dataset/detail/captions.h"

#include <algorithm>

#include "chiliad/index/columns.h"
#include "chiliad/text/stored_text.h"

namespace chiliad::dataset::detail {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kLanguageEnd = ".utf8=";

using text::trim;

std::string_view without_mark(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text;
}

CaptionRange range_of(std::string_view text, std::string_view caption, uint32_t language) {
  return {static_cast<uint32_t>(caption.data() - text.data()), static_cast<uint32_t>(caption.size()),
          language};
}

/// 0 for a variant that is left out.
uint32_t language_of(std::string_view locale) {
  if (locale == "zh_CN") return index::language_code("zh");
  if (locale.size() != 2 && locale.size() != 3) return 0;
  return index::language_code(locale);
}

struct TuxpaintLine {
  uint32_t language = 0;
  std::string_view caption;
};

/// Language 0 and no caption if the line has not the form.
TuxpaintLine parse_line(std::string_view line) {
  const size_t end = line.find(kLanguageEnd);
  if (end == std::string_view::npos) return {};
  return {language_of(line.substr(0, end)), trim(line.substr(end + kLanguageEnd.size()))};
}

/// Takes the first line off `text`.
std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

}  // namespace

std::vector<CaptionRange> plain_captions(std::string_view text) {
  const std::string_view caption = trim(without_mark(text));
  if (caption.empty()) return {};
  return {range_of(text, caption, 0)};
}

std::vector<CaptionRange> tuxpaint_captions(std::string_view text) {
  std::vector<CaptionRange> captions;
  const auto add = [&](std::string_view caption, uint32_t language) {
    const auto same = [&](const CaptionRange& other) { return other.language == language; };
    if (caption.empty() || language == 0 || std::any_of(captions.begin(), captions.end(), same)) return;
    captions.push_back(range_of(text, caption, language));
  };
  std::string_view rest = without_mark(text);
  add(trim(take_line(rest)), index::language_code("en"));
  while (!rest.empty()) {
    const TuxpaintLine line = parse_line(take_line(rest));
    add(line.caption, line.language);
  }
  return captions;
}

bool looks_like_tuxpaint(std::string_view text) {
  std::string_view rest = without_mark(text);
  while (!rest.empty()) {
    if (parse_line(take_line(rest)).language != 0) return true;
  }
  return false;
}

}  // namespace chiliad::dataset::detail
