#include "chiliad/text/detail/word_piece.h"

#include <fmt/format.h>

#include <algorithm>

#include "chiliad/base/error.h"

namespace chiliad::text::detail {
namespace {

bool begins_character(char byte) {
  return (static_cast<uint8_t>(byte) & 0xC0U) != 0x80U;
}

}  // namespace

WordPiece::WordPiece(const BpeParts& parts, int64_t max_characters, const std::string& place)
    : tokens_(parts.vocabulary, place), prefix_(parts.continuing_prefix), max_characters_(max_characters) {
  const std::string name = parts.unknown.value_or("[UNK]");
  const auto id = tokens_.id_of(name);
  if (!id) {
    throw InvalidInput(place,
                       fmt::format("model.unk_token: expected a token of the vocabulary, got '{}'", name));
  }
  unknown_ = *id;
}

void WordPiece::encode(std::string_view word, std::vector<int32_t>& ids) const {
  const size_t first = ids.size();
  const auto give_up = [&] {
    ids.resize(first);
    ids.push_back(unknown_);
  };
  if (std::count_if(word.begin(), word.end(), begins_character) > max_characters_) return give_up();
  std::string candidate;
  for (size_t at = 0; at < word.size();) {
    const std::string& prefix = at == 0 ? std::string() : prefix_;
    size_t length = std::min(word.size() - at, tokens_.longest());
    std::optional<int32_t> id;
    for (; length > 0; --length) {
      if (at + length < word.size() && !begins_character(word[at + length])) continue;
      candidate.assign(prefix).append(word.substr(at, length));
      id = tokens_.id_of(candidate);
      if (id) break;
    }
    if (!id) return give_up();
    ids.push_back(*id);
    at += length;
  }
}

}  // namespace chiliad::text::detail
