#include "chiliad/text/document_encoder.h"

#include <fmt/core.h>

#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/text/byte_tokenizer.h"
#include "chiliad/text/detail/utf8.h"

namespace chiliad::text {
namespace {

constexpr int32_t kFirstByte = 2;  // as ByteTokenizer

/// UTF-8 bytes as ids; of any length, unlike captions.
class PlainBytes final : public Tokenizer {
 public:
  std::vector<int32_t> encode(std::string_view text) const override {
    std::string repaired;
    if (detail::replace_broken(text, repaired)) text = repaired;
    std::vector<int32_t> ids;
    ids.reserve(text.size());
    for (const char c : text) ids.push_back(static_cast<uint8_t>(c) + kFirstByte);
    return ids;
  }
  std::vector<int32_t> encode_with_special(std::string_view text) const override { return encode(text); }
  std::string decode(std::span<const int32_t> ids, bool /*skip_special*/) const override {
    std::string bytes;
    for (const int32_t id : ids) {
      if (id >= kFirstByte && id < ByteTokenizer::kVocabulary) bytes += static_cast<char>(id - kFirstByte);
    }
    std::string text;
    (void)detail::replace_broken(bytes, text);
    return text;
  }
  int32_t vocabulary_size() const override { return ByteTokenizer::kVocabulary; }
  std::optional<int32_t> id_of(std::string_view token) const override {
    if (token.size() != 1 || static_cast<uint8_t>(token[0]) >= 0x80) return std::nullopt;
    return static_cast<uint8_t>(token[0]) + kFirstByte;
  }
  Digest digest() const override { return Hasher().add("chiliad bytes 1").digest(); }
};

}  // namespace

std::shared_ptr<const DocumentEncoder> DocumentEncoder::open(const std::string& tokenizer,
                                                             const std::string& end_token) {
  std::unique_ptr<Tokenizer> opened;
  std::optional<int32_t> end_id;
  if (tokenizer.empty()) {
    opened = std::make_unique<PlainBytes>();
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
