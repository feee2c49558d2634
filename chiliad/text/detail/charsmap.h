#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chiliad::text::detail {

/// SentencePiece's table of replacements (`precompiled_charsmap`): a double-array trie of the Darts kind,
/// then the replacements, each ended by a NUL. Immutable.
class Charsmap {
 public:
  /// bytes: length of the trie in bytes (uint32, little end first), the trie, the replacements. Throws
  /// InvalidInput where the lengths cannot be.
  Charsmap(std::string_view bytes, const std::string& place);

  /// As the `tokenizers` library: by grapheme clusters, then by characters. `text` is UTF-8.
  [[nodiscard]] std::string normalize(std::string_view text) const;

  struct Replacement {
    size_t length = 0;  ///< bytes that it replaces
    std::string_view text;
  };
  /// As SentencePiece: the longest beginning of `text` that has one.
  [[nodiscard]] std::optional<Replacement> longest_replacement(std::string_view text) const;

 private:
  template <typename Visit>
  void for_prefixes(std::string_view text, const Visit& visit) const;
  [[nodiscard]] std::optional<std::string_view> replacement_of(std::string_view chunk) const;

  std::vector<uint32_t> trie_;
  std::string replacements_;
};

/// Nothing where `text` is not base64.
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

}  // namespace chiliad::text::detail
