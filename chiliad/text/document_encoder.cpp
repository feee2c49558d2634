#include "chiliad/text/document_encoder.h"

#include <fmt/core.h>

#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/text/byte_tokenizer.h"
#include "chiliad/text/detail/plain_bytes.h"

namespace chiliad::text {

std::shared_ptr<const DocumentEncoder> DocumentEncoder::open(const std::string& tokenizer,
                                                             const std::string& end_token) {
  std::unique_ptr<Tokenizer> opened;
  std::optional<int32_t> end_id;
  if (tokenizer.empty()) {
    opened = detail::plain_bytes();
    end_id = ByteTokenizer::kNull;
  } else {
    opened = open_tokenizer(tokenizer);
    if (!end_token.empty()) end_id = opened->id_of(end_token);
    if (!end_token.empty() && !end_id) {
      throw InvalidInput(tokenizer,
                         fmt::format("end token: expected a token of the vocabulary, got '{}'. Look at "
                                     "eos_token of its tokenizer_config.json",
                                     end_token));
    }
  }
  return std::shared_ptr<const DocumentEncoder>(new DocumentEncoder(std::move(opened), end_id));
}

std::vector<int32_t> DocumentEncoder::encode(std::string_view document) const {
  std::vector<int32_t> ids = tokenizer_->encode_with_special(document);
  if (end_id_ && (ids.empty() || ids.back() != *end_id_)) ids.push_back(*end_id_);
  return ids;
}

Digest DocumentEncoder::digest() const {
  return Hasher().add("chiliad documents 1").add(tokenizer_->digest()).add(end_id_.value_or(-1)).digest();
}

}  // namespace chiliad::text
