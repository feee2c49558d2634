#include <utility>

#include "chiliad/text/detail/byte_level.h"
#include "chiliad/text/detail/steps.h"

namespace chiliad::text::detail {
namespace {

struct Tile {
  Span span;
  bool match = false;
};

std::vector<Tile> tiles_of(const Pattern& pattern, std::string_view text, bool invert) {
  std::vector<Tile> tiles;
  size_t at = 0;
  for (const Span& span : pattern.find_all(text)) {
    if (span.begin > at) tiles.push_back({{at, span.begin}, invert});
    tiles.push_back({span, !invert});
    at = span.end;
  }
  if (at < text.size()) tiles.push_back({{at, text.size()}, invert});
  return tiles;
}

/// Whether `tile` goes into the one before it.
bool joins(SplitBehavior behavior, const Tile& before, const Tile& tile) {
  switch (behavior) {
    case SplitBehavior::kMergedWithPrevious:
      return tile.match && !before.match;
    case SplitBehavior::kMergedWithNext:
      return before.match && !tile.match;
    case SplitBehavior::kContiguous:
      return tile.match == before.match;
    default:
      return false;
  }
}

std::vector<Span> split(const Pattern& pattern, SplitBehavior behavior, bool invert, std::string_view text) {
  std::vector<Span> spans;
  const Tile* before = nullptr;
  const std::vector<Tile> tiles = tiles_of(pattern, text, invert);
  for (const Tile& tile : tiles) {
    if (behavior == SplitBehavior::kRemoved && tile.match) continue;
    if (before != nullptr && joins(behavior, *before, tile)) {
      spans.back().end = tile.span.end;
    } else {
      spans.push_back(tile.span);
    }
    before = &tile;
  }
  return spans;
}

/// Appends the spans of a text; `at_start` tells of the text.
void add_pieces(const std::string& text, bool at_start, const std::vector<Span>& spans,
                std::vector<Piece>& out) {
  for (const Span& span : spans)
    out.push_back({text.substr(span.begin, span.end - span.begin), at_start && span.begin == 0});
}

void by_bytes(const PreTokenizerStep& step, const Piece& piece, std::vector<Piece>& out) {
  std::string text = piece.text;
  if (step.add_prefix_space && !text.starts_with(' ')) text.insert(0, 1, ' ');
  std::vector<Span> spans{{0, text.size()}};
  if (step.split) spans = split(step.pattern, SplitBehavior::kIsolated, false, text);
  for (const Span& span : spans) {
    const std::string_view bytes = std::string_view(text).substr(span.begin, span.end - span.begin);
    out.push_back({bytes_to_characters(bytes), piece.at_start && span.begin == 0});
  }
}

void by_spaces(const PreTokenizerStep& step, const Piece& piece, std::vector<Piece>& out) {
  std::string text = Pattern::literal(" ").replace_all(piece.text, step.replacement);
  const bool prepend =
      step.prepend == PrependScheme::kAlways || (step.prepend == PrependScheme::kFirst && piece.at_start);
  if (prepend && !text.starts_with(step.replacement)) text.insert(0, step.replacement);
  std::vector<Span> spans{{0, text.size()}};
  if (step.split) spans = split(step.pattern, SplitBehavior::kMergedWithNext, false, text);
  add_pieces(text, piece.at_start, spans, out);
}

void apply(const PreTokenizerStep& step, const Piece& piece, std::vector<Piece>& out) {
  switch (step.kind) {
    case PreTokenizerStep::Kind::kByteLevel:
      by_bytes(step, piece, out);
      return;
    case PreTokenizerStep::Kind::kMetaspace:
      by_spaces(step, piece, out);
      return;
    case PreTokenizerStep::Kind::kSplit:
      break;
  }
  add_pieces(piece.text, piece.at_start, split(step.pattern, step.behavior, step.invert, piece.text), out);
}

}  // namespace

std::vector<std::string> pre_tokenize(const std::vector<PreTokenizerStep>& steps, const Piece& whole) {
  std::vector<Piece> pieces;
  if (!whole.text.empty()) pieces.push_back(whole);
  for (const PreTokenizerStep& step : steps) {
    std::vector<Piece> next;
    for (const Piece& piece : pieces) apply(step, piece, next);
    pieces.swap(next);
  }
  std::vector<std::string> words;
  words.reserve(pieces.size());
  for (Piece& piece : pieces) words.push_back(std::move(piece.text));
  return words;
}

}  // namespace chiliad::text::detail
