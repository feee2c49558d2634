// Checks of the raw text, before any YAML: encoding, control characters, tabs, directives.
#include "chiliad/spec/detail/source_text.h"

#include <fmt/core.h>

#include <algorithm>

#include "chiliad/base/error.h"

namespace chiliad::spec::detail {
namespace {

// Length of the well-formed UTF-8 sequence at the start of `text`, 0 if there is none.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xC2 && lead <= 0xDF   ? 2
                        : (lead & 0xF0) == 0xE0        ? 3
                        : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                       : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const bool overlong = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xF0 && byte(1) < 0x90);
  const bool surrogate = lead == 0xED && byte(1) > 0x9F;
  const bool past_end = lead == 0xF4 && byte(1) > 0x8F;
  return overlong || surrogate || past_end ? 0 : length;
}

std::string place_of(std::string_view text, size_t offset, const std::string& name) {
  const std::string_view before = text.substr(0, offset);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t line_start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return fmt::format("{}:{}:{}", name, line, offset - line_start + 1);
}

}  // namespace

size_t first_bad_utf8(std::string_view text) {
  size_t offset = 0;
  while (offset < text.size()) {
    const size_t length = utf8_length(text.substr(offset));
    if (length == 0) return offset;
    offset += length;
  }
  return offset;
}

void check_source_text(std::string_view text, const std::string& name) {
  const size_t bad = first_bad_utf8(text);
  if (bad < text.size()) {
    throw InvalidInput(
        place_of(text, bad, name),
        fmt::format("expected UTF-8, got the byte 0x{:02x} at byte offset {}. Save the file as UTF-8",
                    static_cast<unsigned char>(text[bad]), bad));
  }
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == '\t')
      throw InvalidInput(place_of(text, i, name), "expected spaces, got a tab. Indent with spaces");
    if ((byte < 0x20 && byte != '\n' && byte != '\r') || byte == 0x7F) {
      throw InvalidInput(place_of(text, i, name),
                         fmt::format("expected text, got the control character 0x{:02x}", byte));
    }
    if (byte == '%' && (i == 0 || text[i - 1] == '\n')) {
      throw InvalidInput(place_of(text, i, name), "expected a key, got a YAML directive. Remove the line");
    }
  }
}

std::string quote(std::string_view text) {
  constexpr size_t kMaxShown = 60;
  std::string shown = "\"";
  for (const char c : text.substr(0, kMaxShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      shown += fmt::format("\\x{:02x}", byte);
    } else {
      shown += c;
    }
  }
  // A cut inside a character leaves a piece of it behind.
  if (text.size() > kMaxShown) shown.resize(first_bad_utf8(shown));
  return shown + (text.size() > kMaxShown ? "...\"" : "\"");
}

}  // namespace chiliad::spec::detail
