#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chiliad/base/hash.h"
#include "chiliad/text/tokenizer.h"

namespace chiliad::text {

/// Documents as training sequences of a language model: the tokenizer's frame, the text, the end token.
/// Immutable, thread-safe.
class DocumentEncoder {
 public:
  /// tokenizer: a tokenizer.json; empty: bytes (id = byte + 2; 0 pads, 1 ends a document). end_token: content
  /// of the token behind each document; empty: none (bytes always have theirs). Throws InvalidInput.
  [[nodiscard]] static std::shared_ptr<const DocumentEncoder> open(const std::string& tokenizer,
                                                                   const std::string& end_token);

  /// All ids of a document, uncut; the end token comes once, also where the frame ends with it.
  [[nodiscard]] std::vector<int32_t> encode(std::string_view document) const;
  [[nodiscard]] const Tokenizer& tokenizer() const { return *tokenizer_; }
  [[nodiscard]] std::optional<int32_t> end_id() const { return end_id_; }
  /// Of tokenizer and end token; keys the columns of token counts.
  [[nodiscard]] Digest digest() const;

 private:
  DocumentEncoder(std::unique_ptr<Tokenizer> tokenizer, std::optional<int32_t> end_id)
      : tokenizer_(std::move(tokenizer)), end_id_(end_id) {}

  std::unique_ptr<Tokenizer> tokenizer_;
  std::optional<int32_t> end_id_;
};

/// The document in a line of JSON lines: the string `text` of its object. Bytes that are not UTF-8 count as
/// U+FFFD; of a repeated key the last counts. `refusal` says why there is none.
struct LineDocument {
  std::string text;
  std::string refusal;
};
[[nodiscard]] LineDocument document_of_line(std::string_view line);

}  // namespace chiliad::text
