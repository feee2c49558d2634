#include "chiliad/text/byte_tokenizer.h"

#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/text/detail/utf8.h"

namespace chiliad::text {

std::vector<int32_t> ByteTokenizer::encode(std::string_view text) const {
  CHILIAD_CHECK_GT(max_tokens_, 0);
  if (text.starts_with(detail::kByteOrderMark)) text.remove_prefix(detail::kByteOrderMark.size());
  if (text.empty()) return {kNull};
  std::vector<int32_t> ids;
  while (!text.empty()) {
    const detail::Utf8Step step = detail::next_character(text);
    const std::string_view character = step.valid ? text.substr(0, step.length) : detail::kReplacement;
    if (static_cast<int64_t>(ids.size() + character.size()) > max_tokens_) break;
    for (const char c : character) ids.push_back(static_cast<uint8_t>(c) + 2);
    text.remove_prefix(step.length);
  }
  return ids;
}

std::string ByteTokenizer::decode(std::span<const int32_t> ids) {
  std::string text;
  for (const int32_t id : ids) {
    if (id > kNull && id < kVocabulary) text += static_cast<char>(id - kNull - 1);
  }
  return text;
}

Digest ByteTokenizer::digest() const {
  return Hasher().add("chiliad byte tokenizer 1").add(max_tokens_).digest();
}

bool repair_utf8(std::string& text) {
  std::string_view rest = text;
  if (rest.starts_with(detail::kByteOrderMark)) rest.remove_prefix(detail::kByteOrderMark.size());
  std::string repaired;
  const bool replaced = detail::replace_broken(rest, repaired);
  text = std::move(repaired);
  return replaced;
}

}  // namespace chiliad::text
