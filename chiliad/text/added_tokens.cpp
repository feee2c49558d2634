#include "chiliad/text/detail/added_tokens.h"

#include <algorithm>

#include "chiliad/text/detail/unicode.h"
#include "chiliad/text/detail/utf8.h"

namespace chiliad::text::detail {
namespace {

uint64_t edge_key(uint64_t node, char byte) {
  return (node << 8U) | static_cast<uint8_t>(byte);
}

size_t last_character(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xC0U) == 0x80U) --at;
  return at;
}

bool word_ends(std::string_view text) {
  return !text.empty() && is_word(code_point(text.substr(last_character(text))));
}

bool word_begins(std::string_view text) {
  return !text.empty() && is_word(code_point(text.substr(0, next_character(text).length)));
}

size_t spaces_from(std::string_view text, size_t at, size_t end) {
  while (at < end) {
    const size_t length = next_character(text.substr(at)).length;
    if (!is_space(code_point(text.substr(at, length)))) break;
    at += length;
  }
  return at;
}

size_t spaces_before(std::string_view text, size_t at, size_t begin) {
  while (at > begin) {
    const size_t start = last_character(text.substr(0, at));
    if (!is_space(code_point(text.substr(start, at - start)))) break;
    at = start;
  }
  return std::max(at, begin);
}

}  // namespace

void AddedTokens::add(std::string_view content, const AddedToken& token) {
  uint32_t node = 0;
  for (const char byte : content) {
    const auto [edge, is_new] = edges_.emplace(edge_key(node, byte), static_cast<uint32_t>(token_at_.size()));
    if (is_new) token_at_.push_back(-1);
    node = edge->second;
  }
  begins_[static_cast<uint8_t>(content.front())] = true;
  if (token_at_[node] >= 0) return;
  token_at_[node] = static_cast<int32_t>(tokens_.size());
  tokens_.push_back(token);
}

int32_t AddedTokens::longest_at(std::string_view text, size_t at, size_t& end) const {
  int32_t found = -1;
  uint32_t node = 0;
  for (size_t i = at; i < text.size(); ++i) {
    const auto edge = edges_.find(edge_key(node, text[i]));
    if (edge == edges_.end()) break;
    node = edge->second;
    if (token_at_[node] < 0) continue;
    found = token_at_[node];
    end = i + 1;
  }
  return found;
}

std::vector<Stretch> AddedTokens::cut(std::string_view text) const {
  std::vector<Stretch> stretches;
  size_t done = 0;
  size_t at = 0;
  while (at < text.size()) {
    size_t end = 0;
    const int32_t found = begins_[static_cast<uint8_t>(text[at])] ? longest_at(text, at, end) : -1;
    if (found < 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<size_t>(found)];
    size_t begin = at;
    at = end;
    if (token.single_word && (word_ends(text.substr(0, begin)) || word_begins(text.substr(end)))) continue;
    if (token.lstrip) begin = spaces_before(text, begin, done);
    if (token.rstrip) end = spaces_from(text, end, text.size());
    if (begin > done) stretches.push_back({{done, begin}, -1});
    stretches.push_back({{std::max(begin, done), end}, token.id});
    done = std::max(done, end);
    at = std::max(at, end);
  }
  if (done < text.size()) stretches.push_back({{done, text.size()}, -1});
  return stretches;
}

}  // namespace chiliad::text::detail
