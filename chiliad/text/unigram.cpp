#include "chiliad/text/detail/unigram.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "chiliad/base/error.h"
#include "chiliad/text/detail/utf8.h"

namespace chiliad::text::detail {
namespace {

constexpr double kUnknownPenalty = 10.0;

/// The best cut of the word up to a byte.
struct Best {
  double score = 0.0;
  int64_t begin = -1;  // of its last token; -1: none ends here
  int32_t id = 0;
};

}  // namespace

Unigram::Unigram(const BpeParts& parts, const UnigramParts& scores, const std::string& place)
    : tokens_(parts.vocabulary, place),
      scores_(scores.scores),
      byte_fallback_(parts.byte_fallback),
      single_precision_(scores.single_precision) {
  if (!scores.unknown || tokens_.content_of(*scores.unknown) == nullptr)
    throw InvalidInput(place, "model.unk_id: expected the id of a token, got none. Copy the file anew");
  unknown_ = *scores.unknown;
  unknown_score_ =
      scores.unknown_score.value_or(*std::min_element(scores_.begin(), scores_.end()) - kUnknownPenalty);
}

void Unigram::encode(std::string_view word, std::vector<int32_t>& ids) const {
  // SentencePiece compares unrounded sums with rounded ones; long texts need the same.
  const auto rounded = [&](double sum) { return single_precision_ ? static_cast<float>(sum) : sum; };
  std::vector<Best> best(word.size() + 1);
  for (size_t at = 0; at < word.size();) {
    const size_t character = next_character(word.substr(at)).length;
    bool is_known = false;
    const auto offer = [&](size_t length, double sum, int32_t id) {
      Best& end = best[at + length];
      if (end.begin < 0 || sum > end.score) end = {rounded(sum), static_cast<int64_t>(at), id};
    };
    const size_t longest = std::min(tokens_.longest(), word.size() - at);
    for (size_t length = 1; length <= longest; ++length) {
      const auto id = tokens_.id_of(word.substr(at, length));
      if (!id || std::isinf(scores_[static_cast<size_t>(*id)])) continue;
      offer(length, best[at].score + scores_[static_cast<size_t>(*id)], *id);
      is_known = is_known || length == character;
    }
    if (!is_known) offer(character, rounded(best[at].score + unknown_score_), unknown_);
    at += character;
  }
  struct Part {
    size_t begin;
    size_t end;
    int32_t id;
  };
  std::vector<Part> parts;  // from the last to the first
  for (size_t end = word.size(); end > 0; end = static_cast<size_t>(best[end].begin)) {
    const auto begin = static_cast<size_t>(best[end].begin);
    if (best[end].id == unknown_ && !parts.empty() && parts.back().id == unknown_) {
      parts.back().begin = begin;
    } else {
      parts.push_back({begin, end, best[end].id});
    }
  }
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (part->id != unknown_) {
      ids.push_back(part->id);
    } else {
      add_unknown(word.substr(part->begin, part->end - part->begin), ids);
    }
  }
}

void Unigram::add_unknown(std::string_view text, std::vector<int32_t>& ids) const {
  std::vector<int32_t> bytes;
  if (byte_fallback_) {
    for (const char c : text) {
      const auto id = tokens_.id_of(fmt::format("<0x{:02X}>", static_cast<uint8_t>(c)));
      if (!id) break;
      bytes.push_back(*id);
    }
  }
  if (bytes.empty() || bytes.size() != text.size()) bytes = {unknown_};
  ids.insert(ids.end(), bytes.begin(), bytes.end());
}

}  // namespace chiliad::text::detail
