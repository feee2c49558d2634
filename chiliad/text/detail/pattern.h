#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct pcre2_real_code_8;

namespace chiliad::text::detail {

/// Bytes [begin, end) of a text.
struct Span {
  size_t begin = 0;
  size_t end = 0;
};

/// A literal string or a regular expression over UTF-8, as tokenizer.json has them. Immutable, thread-safe,
/// cheap to copy; a default one finds nothing.
class Pattern {
 public:
  Pattern() = default;
  [[nodiscard]] static Pattern literal(std::string text);
  /// Oniguruma's meaning of the common syntax: \s is White_Space, classes are Unicode's. Throws InvalidInput.
  [[nodiscard]] static Pattern regex(const std::string& expression, std::string place);

  /// Matches from left to right that do not overlap; none is empty. `text` is UTF-8. Throws InvalidInput
  /// where the expression backtracks without end.
  [[nodiscard]] std::vector<Span> find_all(std::string_view text) const;
  [[nodiscard]] std::string replace_all(std::string_view text, std::string_view content) const;

 private:
  std::string literal_;
  std::string place_;
  std::shared_ptr<pcre2_real_code_8> code_;  // shared by copies; immutable
};

}  // namespace chiliad::text::detail
