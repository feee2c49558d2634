#include "chiliad/text/detail/piece_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/io/file.h"
#include "chiliad/text/detail/bpe.h"
#include "chiliad/text/detail/charsmap.h"
#include "chiliad/text/detail/piece_model.h"
#include "chiliad/text/detail/unigram.h"
#include "chiliad/text/detail/utf8.h"
#include "chiliad/text/detail/vocabulary_files.h"

namespace chiliad::text::detail {
namespace {

constexpr int64_t kMaxFileBytes = 128LL << 20;
constexpr size_t kMaxTextBytes = 256 << 20;
constexpr std::string_view kSpaceMark = "\xE2\x96\x81";
constexpr float kUnknownPenalty = 10.0F;

/// Contents that are taken whole wherever they are in a text.
class Contents {
 public:
  void add(const std::string& content, int32_t id) {
    ids_.emplace(content, id);
    longest_ = std::max(longest_, content.size());
  }
  /// The longest at the begin of `text`: its bytes and its id.
  [[nodiscard]] std::optional<std::pair<size_t, int32_t>> longest_at(std::string_view text) const {
    for (size_t length = std::min(longest_, text.size()); length > 0; --length) {
      const auto found = ids_.find(text.substr(0, length));
      if (found != ids_.end()) return std::pair(length, found->second);
    }
    return std::nullopt;
  }
  [[nodiscard]] bool empty() const { return ids_.empty(); }

 private:
  StringMap<int32_t> ids_;
  size_t longest_ = 0;
};

/// SentencePiece's normalizer: replacements, one space for many, marks for spaces.
class PieceNormalizer {
 public:
  PieceNormalizer(const PieceModel& model, const Contents* kept, const std::string& place)
      : dummy_prefix_(model.add_dummy_prefix),
        removes_(model.remove_extra_spaces),
        space_(model.escape_spaces ? kSpaceMark : std::string_view(" ")),
        kept_(kept) {
    if (!model.charsmap.empty()) charsmap_.emplace(model.charsmap, place);
  }

  [[nodiscard]] std::string operator()(std::string_view text) const {
    if (removes_) {
      while (!text.empty()) {
        const auto step = next(text);
        if (step.text != " ") break;
        text.remove_prefix(step.length);
      }
    }
    std::string out;
    if (text.empty()) return out;
    out.reserve(text.size() + text.size() / 4);
    if (dummy_prefix_) out += space_;
    bool after_space = removes_;
    while (!text.empty()) {
      const auto step = next(text);
      std::string_view piece = step.text;
      while (after_space && piece.starts_with(' ')) piece.remove_prefix(1);
      for (const char c : piece) {
        if (c == ' ') {
          out += space_;
        } else {
          out += c;
        }
      }
      if (!piece.empty()) after_space = removes_ && piece.ends_with(' ');
      text.remove_prefix(step.length);
    }
    while (removes_ && std::string_view(out).ends_with(space_)) out.resize(out.size() - space_.size());
    return out;
  }

 private:
  [[nodiscard]] Charsmap::Replacement next(std::string_view text) const {
    if (const auto whole = kept_->longest_at(text)) return {whole->first, text.substr(0, whole->first)};
    if (charsmap_) {
      if (const auto replacement = charsmap_->longest_replacement(text)) return *replacement;
    }
    const size_t length = next_character(text).length;
    return {length, text.substr(0, length)};
  }

  bool dummy_prefix_;
  bool removes_;
  std::string_view space_;
  const Contents* kept_;  // of the tokenizer that holds this
  std::optional<Charsmap> charsmap_;
};

UnigramParts unigram_parts(const PieceModel& model, int32_t unknown) {
  float least = std::numeric_limits<float>::max();
  float most = std::numeric_limits<float>::lowest();
  for (const TextPiece& piece : model.pieces) {
    if (piece.kind != PieceKind::kNormal) continue;
    least = std::min(least, piece.score);
    most = std::max(most, piece.score);
  }
  UnigramParts parts;
  parts.unknown = unknown;
  parts.unknown_score = least - kUnknownPenalty;
  parts.single_precision = true;
  for (const TextPiece& piece : model.pieces) {
    double score = -std::numeric_limits<double>::infinity();
    if (piece.kind == PieceKind::kNormal) score = piece.score;
    // User-defined pieces beat any cut of the same text.
    if (piece.kind == PieceKind::kUserDefined)
      score = static_cast<double>(static_cast<float>(piece.content.size()) * most) - 0.1;
    parts.scores.push_back(score);
  }
  return parts;
}

/// Every cut of a piece into two others is a merge; cuts of one piece have one rank.
void add_merges(const PieceModel& model, BpeParts& parts) {
  StringMap<float> scores;
  std::map<float, uint32_t, std::greater<>> rank_of;
  for (const TextPiece& piece : model.pieces) {
    if (piece.kind != PieceKind::kNormal) continue;
    scores.emplace(piece.content, piece.score);
    rank_of[piece.score] = 0;
  }
  uint32_t rank = 0;
  for (auto& [score, place] : rank_of) place = rank++;
  for (const auto& [content, score] : scores) {
    const std::string_view whole = content;
    for (size_t cut = next_character(whole).length; cut < whole.size();
         cut += next_character(whole.substr(cut)).length) {
      if (!scores.contains(whole.substr(0, cut)) || !scores.contains(whole.substr(cut))) continue;
      parts.merges.emplace_back(whole.substr(0, cut), whole.substr(cut));
      parts.ranks.push_back(rank_of.at(score));
    }
  }
}

std::unique_ptr<WordModel> make_model(const PieceModel& model, int32_t unknown, const std::string& place) {
  BpeParts parts;
  for (size_t id = 0; id < model.pieces.size(); ++id)
    parts.vocabulary.emplace_back(model.pieces[id].content, static_cast<int32_t>(id));
  parts.byte_fallback = model.byte_fallback;
  if (model.kind == PieceModel::Kind::kUnigram)
    return std::make_unique<Unigram>(parts, unigram_parts(model, unknown), place);
  parts.unknown = model.pieces[static_cast<size_t>(unknown)].content;
  parts.fuse_unknown = true;
  add_merges(model, parts);
  return std::make_unique<Bpe>(std::move(parts), place);
}

std::optional<char> byte_of(const TextPiece& piece) {
  unsigned value = 0;
  if (piece.kind != PieceKind::kByte || std::sscanf(piece.content.c_str(), "<0x%2X>", &value) != 1)
    return std::nullopt;
  return static_cast<char>(value);
}

/// Bytes that are not UTF-8 become one U+FFFD each, as SentencePiece does.
std::string text_of_bytes(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const Utf8Step step = next_character(bytes);
    const size_t length = step.valid ? step.length : 1;
    text += step.valid ? bytes.substr(0, length) : kReplacement;
    bytes.remove_prefix(length);
  }
  return text;
}

class PieceTokenizer final : public Tokenizer {
 public:
  PieceTokenizer(PieceModel model, const PieceFrame& frame, const std::string& place, Digest digest)
      : model_(std::move(model)), normalizer_(model_, &kept_, place), digest_(digest) {
    for (size_t id = 0; id < model_.pieces.size(); ++id) {
      const TextPiece& piece = model_.pieces[id];
      if (piece.kind == PieceKind::kUserDefined) kept_.add(piece.content, static_cast<int32_t>(id));
      if (piece.kind == PieceKind::kUnknown) unknown_ = static_cast<int32_t>(id);
    }
    words_ = make_model(model_, unknown_, place);
    if (frame.begin) begin_ = control(model_.begin_content, place);
    if (frame.end) end_ = control(model_.end_content, place);
  }

  std::vector<int32_t> encode(std::string_view text) const override {
    if (text.size() > kMaxTextBytes) {
      throw InvalidInput("tokenizer", fmt::format("expected a text of at most {} bytes, got {}. Cut it",
                                                  kMaxTextBytes, text.size()));
    }
    std::string repaired;
    if (replace_broken(text, repaired)) text = repaired;
    const std::string normalized = normalizer_(text);
    std::vector<int32_t> ids;
    if (model_.kind == PieceModel::Kind::kUnigram || kept_.empty()) {
      words_->encode(normalized, ids);
    } else {
      encode_between(normalized, ids);
    }
    return ids;
  }

  std::vector<int32_t> encode_with_special(std::string_view text) const override {
    std::vector<int32_t> ids = encode(text);
    if (begin_) ids.insert(ids.begin(), *begin_);
    if (end_) ids.push_back(*end_);
    return ids;
  }

  int64_t frame_begin() const override { return begin_ ? 1 : 0; }

  std::string decode(std::span<const int32_t> ids, bool skip_special) const override {
    std::string text;
    std::string bytes;
    bool at_begin = true;
    const auto flush = [&] {
      if (!bytes.empty()) text += text_of_bytes(std::exchange(bytes, {}));
    };
    for (const int32_t id : ids) {
      if (id < 0 || id >= vocabulary_size()) continue;
      const TextPiece& piece = model_.pieces[static_cast<size_t>(id)];
      if (const auto byte = byte_of(piece)) {
        bytes += *byte;
        continue;
      }
      flush();
      at_begin = at_begin && text.empty();
      add_piece(piece, skip_special, at_begin, text);
    }
    flush();
    return text;
  }

  int32_t vocabulary_size() const override { return static_cast<int32_t>(model_.pieces.size()); }
  std::optional<int32_t> id_of(std::string_view token) const override { return words_->id_of(token); }
  Digest digest() const override { return digest_; }

 private:
  [[nodiscard]] int32_t control(const std::string& content, const std::string& place) const {
    const auto id = words_->id_of(content);
    if (id) return *id;
    throw InvalidInput(place, fmt::format("expected the piece '{}' that frames texts, got none. Set "
                                          "add_bos_token and add_eos_token in tokenizer_config.json",
                                          content));
  }

  /// Merges do not cross pieces that are kept whole.
  void encode_between(std::string_view text, std::vector<int32_t>& ids) const {
    size_t begin = 0;
    for (size_t at = 0; at < text.size();) {
      const auto whole = kept_.longest_at(text.substr(at));
      if (!whole) {
        at += next_character(text.substr(at)).length;
        continue;
      }
      words_->encode(text.substr(begin, at - begin), ids);
      ids.push_back(whole->second);
      at += whole->first;
      begin = at;
    }
    words_->encode(text.substr(begin), ids);
  }

  /// at_begin: becomes false once the space that add_dummy_prefix made is gone.
  void add_piece(const TextPiece& piece, bool skip_special, bool& at_begin, std::string& text) const {
    if (piece.kind == PieceKind::kControl) {
      if (!skip_special) text += piece.content;
      return;
    }
    if (piece.kind == PieceKind::kUnknown) {
      text += model_.unknown_text;
      return;
    }
    std::string_view rest = piece.content;
    if (at_begin && (model_.add_dummy_prefix || model_.remove_extra_spaces) && rest.starts_with(kSpaceMark)) {
      rest.remove_prefix(kSpaceMark.size());
      at_begin = model_.remove_extra_spaces;
    }
    for (size_t mark = rest.find(kSpaceMark); mark != rest.npos; mark = rest.find(kSpaceMark)) {
      text += rest.substr(0, mark);
      text += ' ';
      rest.remove_prefix(mark + kSpaceMark.size());
    }
    text += rest;
  }

  PieceModel model_;
  Contents kept_;
  PieceNormalizer normalizer_;
  std::unique_ptr<WordModel> words_;
  int32_t unknown_ = 0;
  std::optional<int32_t> begin_;
  std::optional<int32_t> end_;
  Digest digest_;
};

}  // namespace

std::unique_ptr<Tokenizer> open_piece_tokenizer(const std::filesystem::path& path) {
  const std::string bytes = io::read_text(path, kMaxFileBytes);
  const PieceFrame frame = read_piece_frame(path.parent_path());
  const Digest digest = Hasher().add("chiliad pieces 1").add(bytes).add(frame.bytes).digest();
  return std::make_unique<PieceTokenizer>(parse_piece_model(bytes, path.string()), frame, path.string(),
                                          digest);
}

}  // namespace chiliad::text::detail
