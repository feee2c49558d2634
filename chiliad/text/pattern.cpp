#define PCRE2_CODE_UNIT_WIDTH 8
#include "chiliad/text/detail/pattern.h"

#include <fmt/core.h>
#include <pcre2.h>

#include <algorithm>
#include <utility>

#include "chiliad/base/error.h"

namespace chiliad::text::detail {
namespace {

constexpr size_t kMaxExpressionBytes = 16384;
constexpr uint32_t kMatchLimit = 50'000'000;  // steps of one match

using MatchData = std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)>;
using MatchContext = std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)>;

std::string error_text(int code) {
  PCRE2_UCHAR buffer[256];
  const int length = pcre2_get_error_message(code, buffer, sizeof buffer);
  return {reinterpret_cast<const char*>(buffer), static_cast<size_t>(length > 0 ? length : 0)};
}

// PCRE2's \s has U+180E, which is no White_Space since Unicode 6.3.
std::string with_unicode_space(const std::string& expression) {
  std::string out;
  for (size_t i = 0; i < expression.size(); ++i) {
    if (expression[i] != '\\' || i + 1 == expression.size()) {
      out += expression[i];
      continue;
    }
    const char escaped = expression[++i];
    if (escaped == 's') {
      out += "\\p{White_Space}";
    } else if (escaped == 'S') {
      out += "\\P{White_Space}";
    } else {
      out += '\\';
      out += escaped;
    }
  }
  return out;
}

size_t after_character(std::string_view text, size_t at) {
  ++at;
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) ++at;
  return at;
}

}  // namespace

Pattern Pattern::literal(std::string text) {
  Pattern pattern;
  pattern.literal_ = std::move(text);
  return pattern;
}

Pattern Pattern::regex(const std::string& expression, std::string place) {
  if (expression.size() > kMaxExpressionBytes) {
    throw InvalidInput(place, fmt::format("expression: expected at most {} bytes, got {}",
                                          kMaxExpressionBytes, expression.size()));
  }
  const std::string ours = with_unicode_space(expression);
  int code = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* compiled =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(ours.data()), ours.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &code, &at, nullptr);
  if (compiled == nullptr) {
    throw InvalidInput(place, fmt::format("expression '{}': expected a regular expression, got {} at byte {}",
                                          expression, error_text(code), at));
  }
  Pattern pattern;
  pattern.place_ = std::move(place);
  pattern.code_ = {compiled, pcre2_code_free};
  pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE);  // only faster: without it the interpreter runs
  return pattern;
}

std::vector<Span> Pattern::find_all(std::string_view text) const {
  std::vector<Span> found;
  if (code_ == nullptr) {
    if (literal_.empty()) return found;
    for (size_t at = text.find(literal_); at != std::string_view::npos; at = text.find(literal_, at)) {
      found.push_back({at, at + literal_.size()});
      at += literal_.size();
    }
    return found;
  }
  const MatchData data(pcre2_match_data_create_from_pattern(code_.get(), nullptr), &pcre2_match_data_free);
  const MatchContext context(pcre2_match_context_create(nullptr), &pcre2_match_context_free);
  CHILIAD_CHECK(data != nullptr && context != nullptr);
  pcre2_set_match_limit(context.get(), kMatchLimit);
  const auto* const subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  size_t at = 0;
  while (at < text.size()) {
    const auto match = [&](uint32_t options) {
      return pcre2_match(code_.get(), subject, text.size(), at, PCRE2_NO_UTF_CHECK | options, data.get(),
                         context.get());
    };
    int code = match(0);
    if (code == PCRE2_ERROR_JIT_STACKLIMIT) code = match(PCRE2_NO_JIT);
    if (code == PCRE2_ERROR_NOMATCH) break;
    if (code < 0) {
      throw InvalidInput(place_,
                         fmt::format("expression on a text of {} bytes: {}. Cut the text into shorter "
                                     "documents, or use a simpler expression",
                                     text.size(), error_text(code)));
    }
    const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(data.get());
    const Span span{ends[0], ends[1]};
    if (span.end <= span.begin) {  // \K may even put the begin behind the end
      at = after_character(text, std::max(at, span.end));
      continue;
    }
    found.push_back(span);
    at = span.end;
  }
  return found;
}

std::string Pattern::replace_all(std::string_view text, std::string_view content) const {
  std::string out;
  size_t at = 0;
  for (const Span& span : find_all(text)) {
    out += text.substr(at, span.begin - at);
    out += content;
    at = span.end;
  }
  out += text.substr(at);
  return out;
}

}  // namespace chiliad::text::detail
