#include "chiliad/text/detail/charsmap.h"

#include <algorithm>

#include "chiliad/base/error.h"
#include "chiliad/text/detail/unicode.h"
#include "chiliad/text/detail/utf8.h"

namespace chiliad::text::detail {
namespace {

constexpr size_t kLongestCluster = 6;  // bytes from which the reference goes by characters

// A node of the trie, as Darts-clone packs it.
bool has_leaf(uint32_t unit) {
  return ((unit >> 8U) & 1U) != 0;
}
uint32_t value_of(uint32_t unit) {
  return unit & 0x7FFFFFFFU;
}
uint32_t label_of(uint32_t unit) {
  return unit & 0x800000FFU;
}
uint32_t offset_of(uint32_t unit) {
  return (unit >> 10U) << ((unit & (1U << 9U)) >> 6U);
}

uint32_t word_at(std::string_view bytes, size_t at) {
  uint32_t word = 0;
  for (size_t i = 4; i-- > 0;) word = word << 8U | static_cast<uint8_t>(bytes[at + i]);
  return word;
}

}  // namespace

Charsmap::Charsmap(std::string_view bytes, const std::string& place) {
  const size_t length = bytes.size() < 4 ? 0 : word_at(bytes, 0);
  if (length == 0 || length % 4 != 0 || length > bytes.size() - 4)
    throw InvalidInput(
        place, "precompiled_charsmap: expected a trie and replacements, got less. Copy the file anew");
  for (size_t at = 4; at < 4 + length; at += 4) trie_.push_back(word_at(bytes, at));
  replacements_ = bytes.substr(4 + length);
}

// Calls visit(replacement) for each prefix in the trie, the shortest first, until it says false.
template <typename Visit>
void Charsmap::for_prefixes(std::string_view text, const Visit& visit) const {
  uint32_t node = offset_of(trie_[0]);
  for (size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<uint8_t>(text[at]);
    if (byte == 0) return;
    node ^= byte;
    if (node >= trie_.size() || label_of(trie_[node]) != byte) return;
    const uint32_t unit = trie_[node];
    node ^= offset_of(unit);
    if (!has_leaf(unit)) continue;
    if (node >= trie_.size()) return;
    const size_t begin = value_of(trie_[node]);
    if (begin >= replacements_.size()) return;
    const std::string_view rest = std::string_view(replacements_).substr(begin);
    if (!visit(Replacement{at + 1, rest.substr(0, rest.find('\0'))})) return;
  }
}

// The shortest prefix in the trie replaces the whole chunk, as in the reference.
std::optional<std::string_view> Charsmap::replacement_of(std::string_view chunk) const {
  std::optional<std::string_view> found;
  for_prefixes(chunk, [&](const Replacement& replacement) {
    found = replacement.text;
    return false;
  });
  return found;
}

std::optional<Charsmap::Replacement> Charsmap::longest_replacement(std::string_view text) const {
  std::optional<Replacement> found;
  for_prefixes(text, [&](const Replacement& replacement) {
    found = replacement;
    return true;
  });
  return found;
}

std::string Charsmap::normalize(std::string_view text) const {
  std::string out;
  for (const std::string_view cluster : grapheme_clusters(text)) {
    if (cluster.size() < kLongestCluster) {
      if (const auto replacement = replacement_of(cluster)) {
        out += *replacement;
        continue;
      }
    }
    for (size_t at = 0; at < cluster.size();) {
      const std::string_view character = cluster.substr(at, next_character(cluster.substr(at)).length);
      out += replacement_of(character).value_or(character);
      at += character.size();
    }
  }
  return out;
}

std::optional<std::string> from_base64(std::string_view text) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  uint32_t bits = 0;
  int num_bits = 0;
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = (bits << 6U | static_cast<uint32_t>(digit)) & 0xFFFFFFU;
    num_bits += 6;
    if (num_bits < 8) continue;
    num_bits -= 8;
    bytes += static_cast<char>(bits >> static_cast<unsigned>(num_bits) & 0xFFU);
  }
  return bytes;
}

}  // namespace chiliad::text::detail
