#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "chiliad/text/detail/tokenizer_file.h"

namespace chiliad::text::detail {

/// A stretch of a text: an added token, or what lies between.
struct Stretch {
  Span span;
  int32_t token = -1;  ///< id, or -1
};

/// Finds added tokens in text: leftmost first, the longest of those that begin there. Time is linear in the
/// text, times the longest content.
class AddedTokens {
 public:
  AddedTokens() : token_at_(1, -1) {}

  /// Looks for `content` (not empty); of equal contents the first stays.
  void add(std::string_view content, const AddedToken& token);
  /// The whole text, in stretches that are not empty.
  [[nodiscard]] std::vector<Stretch> cut(std::string_view text) const;
  [[nodiscard]] bool empty() const { return edges_.empty(); }

 private:
  [[nodiscard]] int32_t longest_at(std::string_view text, size_t at, size_t& end) const;

  std::vector<AddedToken> tokens_;
  std::vector<int32_t> token_at_;                 // of each node of the tree of contents, in tokens_
  std::unordered_map<uint64_t, uint32_t> edges_;  // by node and byte
  bool begins_[256] = {};
};

}  // namespace chiliad::text::detail
