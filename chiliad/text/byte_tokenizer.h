#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chiliad/base/hash.h"

namespace chiliad::text {

/// UTF-8 bytes as tokens: id = byte + 2; 0 pads, 1 is the null caption (dropout, unconditional guidance).
class ByteTokenizer {
 public:
  static constexpr int32_t kPad = 0;
  static constexpr int32_t kNull = 1;
  static constexpr int32_t kVocabulary = 258;

  explicit ByteTokenizer(int64_t max_tokens) : max_tokens_(max_tokens) {}

  /// At most max_tokens ids; a character is never cut. Bytes that are not UTF-8 become U+FFFD. An empty text
  /// is {kNull}.
  [[nodiscard]] std::vector<int32_t> encode(std::string_view text) const;
  /// The text of ids that `encode` gave; padding and the null caption have none.
  [[nodiscard]] static std::string decode(std::span<const int32_t> ids);
  /// Names this tokenizer and its settings; keys the derived columns.
  [[nodiscard]] Digest digest() const;

 private:
  int64_t max_tokens_;
};

/// Replaces what is not UTF-8 by U+FFFD, removes a leading BOM; says whether anything was replaced.
[[nodiscard]] bool repair_utf8(std::string& text);

}  // namespace chiliad::text
