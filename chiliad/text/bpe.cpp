#include "chiliad/text/detail/bpe.h"

#include <fmt/format.h>

#include <queue>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/text/detail/utf8.h"

namespace chiliad::text::detail {
namespace {

uint64_t pair_key(int32_t left, int32_t right) {
  return (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32U) | static_cast<uint32_t>(right);
}

/// A neighbourhood in a word that may be merged; stale once one of its symbols has changed.
struct Candidate {
  uint32_t rank = 0;
  int32_t left = 0;  // positions
  int32_t id = 0;    // after the merge
  // Least rank first, then leftmost.
  bool operator<(const Candidate& other) const {
    return rank != other.rank ? rank > other.rank : left > other.left;
  }
};

struct Symbol {
  int32_t id = 0;
  int32_t before = -1;
  int32_t after = -1;
  bool alive = true;
};

}  // namespace

Bpe::Bpe(BpeParts parts, const std::string& place) : parts_(std::move(parts)) {
  read_vocabulary(place);
  read_merges(place);
  if (parts_.unknown) {
    unknown_ = id_of(*parts_.unknown);
    if (!unknown_) {
      throw InvalidInput(place, fmt::format("model.unk_token: expected a token of the vocabulary, got '{}'",
                                            *parts_.unknown));
    }
  }
  for (int byte = 0; byte < 256; ++byte) byte_ids_.push_back(id_of(fmt::format("<0x{:02X}>", byte)));
  parts_.vocabulary = {};
  parts_.merges = {};
  parts_.ranks = {};
}

void Bpe::read_vocabulary(const std::string& place) {
  ids_.reserve(parts_.vocabulary.size());
  for (const auto& [content, id] : parts_.vocabulary) {
    const auto entry = ids_.emplace(content, id).first;
    if (static_cast<size_t>(id) >= contents_.size()) contents_.resize(static_cast<size_t>(id) + 1);
    const std::string*& slot = contents_[static_cast<size_t>(id)];
    if (slot != nullptr && slot != &entry->first) {
      throw InvalidInput(
          place, fmt::format("model.vocab: expected one token an id, got '{}' and '{}' with id {}", *slot,
                             content, id));
    }
    slot = &entry->first;
  }
}

void Bpe::read_merges(const std::string& place) {
  merges_.reserve(parts_.merges.size());
  const size_t skipped = parts_.continuing_prefix.size();
  for (size_t rank = 0; rank < parts_.merges.size(); ++rank) {
    const std::string& left = parts_.merges[rank].first;
    const std::string& right = parts_.merges[rank].second;
    const auto find = [&](const std::string& token) {
      const auto id = id_of(token);
      if (id) return *id;
      throw InvalidInput(place,
                         fmt::format("model.merges[{}]: expected tokens of the vocabulary, got '{}' in "
                                     "'{}' + '{}'",
                                     rank, token, left, right));
    };
    const int32_t first = find(left);
    const int32_t second = find(right);
    const int32_t made = find(left + right.substr(std::min(skipped, right.size())));
    const uint32_t order = parts_.ranks.empty() ? static_cast<uint32_t>(rank) : parts_.ranks[rank];
    merges_[pair_key(first, second)] = {order, made};
  }
}

std::optional<int32_t> Bpe::id_of(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

const std::string* Bpe::content_of(int32_t id) const {
  return id < 0 || id >= end_of_ids() ? nullptr : contents_[static_cast<size_t>(id)];
}

void Bpe::encode(std::string_view word, std::vector<int32_t>& ids) const {
  if (parts_.ignore_merges) {
    if (const auto whole = id_of(word)) {
      ids.push_back(*whole);
      return;
    }
  }
  std::vector<int32_t> symbols = characters(word);
  merge(symbols);
  ids.insert(ids.end(), symbols.begin(), symbols.end());
}

bool Bpe::add_bytes(std::string_view character, std::vector<int32_t>& ids) const {
  for (const char c : character) {
    if (!byte_ids_[static_cast<uint8_t>(c)]) return false;
  }
  for (const char c : character) ids.push_back(*byte_ids_[static_cast<uint8_t>(c)]);
  return true;
}

// An unknown character is held back until the next known one, as the reference does: bytes go before it.
std::vector<int32_t> Bpe::characters(std::string_view word) const {
  std::vector<int32_t> ids;
  ids.reserve(word.size());
  bool held = false;
  const bool decorated = !parts_.continuing_prefix.empty() || !parts_.word_suffix.empty();
  for (size_t at = 0; at < word.size();) {
    const size_t length = next_character(word.substr(at)).length;
    std::string_view character = word.substr(at, length);
    std::string with_marks;
    if (decorated) {
      if (at > 0) with_marks = parts_.continuing_prefix;
      with_marks += character;
      if (at + length == word.size()) with_marks += parts_.word_suffix;
      character = with_marks;
    }
    at += length;
    if (const auto id = id_of(character)) {
      if (std::exchange(held, false)) ids.push_back(*unknown_);
      ids.push_back(*id);
      continue;
    }
    if (parts_.byte_fallback && add_bytes(character, ids)) continue;
    if (!unknown_) continue;
    if (held && !parts_.fuse_unknown) ids.push_back(*unknown_);
    held = true;
  }
  if (held) ids.push_back(*unknown_);
  return ids;
}

const Bpe::Merge* Bpe::merge_of(int32_t left, int32_t right) const {
  const auto found = merges_.find(pair_key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

void Bpe::merge(std::vector<int32_t>& ids) const {
  if (ids.size() < 2) return;
  const auto count = static_cast<int32_t>(ids.size());
  std::vector<Symbol> symbols(ids.size());
  const auto at = [&](int32_t position) -> Symbol& { return symbols[static_cast<size_t>(position)]; };
  std::priority_queue<Candidate> candidates;
  const auto consider = [&](int32_t left) {
    if (left < 0 || at(left).after < 0) return;
    const Merge* found = merge_of(at(left).id, at(at(left).after).id);
    if (found != nullptr) candidates.push({found->rank, left, found->id});
  };
  for (int32_t i = 0; i < count; ++i)
    at(i) = {ids[static_cast<size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1, true};
  for (int32_t i = 0; i + 1 < count; ++i) consider(i);
  while (!candidates.empty()) {
    const Candidate top = candidates.top();
    candidates.pop();
    Symbol& left = at(top.left);
    if (!left.alive || left.after < 0) continue;
    Symbol& right = at(left.after);
    const Merge* now = merge_of(left.id, right.id);
    if (now == nullptr || now->id != top.id) continue;
    left.id = top.id;
    left.after = right.after;
    right.alive = false;
    if (left.after >= 0) at(left.after).before = top.left;
    consider(left.before);
    consider(top.left);
  }
  ids.clear();
  for (int32_t i = 0; i >= 0; i = at(i).after) ids.push_back(at(i).id);
}

}  // namespace chiliad::text::detail
