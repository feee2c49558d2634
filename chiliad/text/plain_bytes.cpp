#include "chiliad/text/detail/plain_bytes.h"

#include "chiliad/text/byte_tokenizer.h"
#include "chiliad/text/detail/utf8.h"

namespace chiliad::text::detail {
namespace {

constexpr int32_t kFirstByte = 2;  // as ByteTokenizer

class PlainBytes final : public Tokenizer {
 public:
  std::vector<int32_t> encode(std::string_view text) const override {
    std::string repaired;
    if (replace_broken(text, repaired)) text = repaired;
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
    (void)replace_broken(bytes, text);
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

std::unique_ptr<Tokenizer> plain_bytes() {
  return std::make_unique<PlainBytes>();
}

}  // namespace chiliad::text::detail
