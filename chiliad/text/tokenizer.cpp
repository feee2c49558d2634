#include "chiliad/text/tokenizer.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/io/file.h"
#include "chiliad/text/detail/added_tokens.h"
#include "chiliad/text/detail/bpe.h"
#include "chiliad/text/detail/piece_tokenizer.h"
#include "chiliad/text/detail/steps.h"
#include "chiliad/text/detail/unigram.h"
#include "chiliad/text/detail/utf8.h"
#include "chiliad/text/detail/vocabulary_files.h"
#include "chiliad/text/detail/word_piece.h"

namespace chiliad::text {
namespace {

using detail::Piece;
using detail::Stretch;

constexpr int64_t kMaxFileBytes = 128LL << 20;
constexpr size_t kMaxTextBytes = 256 << 20;
constexpr size_t kMaxCachedWordBytes = 64;
constexpr size_t kMaxCachedWords = 1 << 16;

/// Words of one text that came up before.
class WordCache {
 public:
  explicit WordCache(const detail::WordModel& model) : model_(model) {}

  void encode(const std::string& word, std::vector<int32_t>& ids) {
    if (word.size() > kMaxCachedWordBytes || known_.size() >= kMaxCachedWords) {
      model_.encode(word, ids);
      return;
    }
    const auto [entry, is_new] = known_.try_emplace(word);
    if (is_new) model_.encode(word, entry->second);
    ids.insert(ids.end(), entry->second.begin(), entry->second.end());
  }

 private:
  const detail::WordModel& model_;
  std::unordered_map<std::string, std::vector<int32_t>> known_;
};

std::string cut_out(std::string_view text, const detail::Span& span) {
  return std::string(text.substr(span.begin, span.end - span.begin));
}

std::unique_ptr<detail::WordModel> make_model(detail::TokenizerFile& file, const std::string& place) {
  switch (file.kind) {
    case detail::ModelKind::kWordPiece:
      return std::make_unique<detail::WordPiece>(file.model, file.max_word_characters, place);
    case detail::ModelKind::kUnigram:
      return std::make_unique<detail::Unigram>(file.model, file.unigram, place);
    case detail::ModelKind::kBpe:
      break;
  }
  return std::make_unique<detail::Bpe>(std::move(file.model), place);
}

class FileTokenizer final : public Tokenizer {
 public:
  FileTokenizer(detail::TokenizerFile file, const std::string& place, Digest digest)
      : file_(std::move(file)), model_(make_model(file_, place)), digest_(digest) {
    file_.model = {};
    end_of_ids_ = model_->end_of_ids();
    for (const bool special : {true, false}) {  // special ones win where contents are equal after normalizing
      for (const detail::AddedToken& token : file_.added) {
        if (token.special == special) add(token);
      }
    }
  }

  std::vector<int32_t> encode(std::string_view text) const override {
    if (text.size() > kMaxTextBytes) {
      throw InvalidInput("tokenizer", fmt::format("expected a text of at most {} bytes, got {}. Cut it",
                                                  kMaxTextBytes, text.size()));
    }
    std::string repaired;
    if (detail::replace_broken(text, repaired)) text = repaired;
    std::vector<int32_t> ids;
    WordCache words(*model_);
    for (const Stretch& raw : raw_.cut(text)) {
      if (raw.token >= 0) {
        ids.push_back(raw.token);
        continue;
      }
      const std::string plain = detail::normalize(file_.normalizer, cut_out(text, raw.span));
      for (const Stretch& stretch : normalized_.cut(plain)) {
        if (stretch.token >= 0) {
          ids.push_back(stretch.token);
          continue;
        }
        const Piece piece{cut_out(plain, stretch.span), raw.span.begin == 0 && stretch.span.begin == 0};
        for (const std::string& word : detail::pre_tokenize(file_.pre_tokenizer, piece))
          words.encode(word, ids);
      }
    }
    return ids;
  }

  std::vector<int32_t> encode_with_special(std::string_view text) const override {
    std::vector<int32_t> ids = encode(text);
    ids.insert(ids.begin(), file_.frame.before.begin(), file_.frame.before.end());
    ids.insert(ids.end(), file_.frame.after.begin(), file_.frame.after.end());
    return ids;
  }

  int64_t frame_begin() const override { return static_cast<int64_t>(file_.frame.before.size()); }

  std::string decode(std::span<const int32_t> ids, bool skip_special) const override {
    std::vector<std::string> tokens;
    for (const int32_t id : ids) {
      if (skip_special && special_.contains(id)) continue;
      const auto added = added_content_.find(id);
      const std::string* content = added == added_content_.end() ? model_->content_of(id) : &added->second;
      if (content != nullptr) tokens.push_back(*content);
    }
    if (file_.decoder) return detail::decode_tokens(*file_.decoder, std::move(tokens));
    std::string text;  // without a decoder the reference puts spaces between
    for (size_t i = 0; i < tokens.size(); ++i) text += (i == 0 ? "" : " ") + tokens[i];
    return text;
  }

  int32_t vocabulary_size() const override { return end_of_ids_; }

  std::optional<int32_t> id_of(std::string_view token) const override {
    const auto found = added_id_.find(token);
    return found == added_id_.end() ? model_->id_of(token) : std::optional(found->second);
  }

  Digest digest() const override { return digest_; }

 private:
  void add(const detail::AddedToken& token) {
    end_of_ids_ = std::max(end_of_ids_, token.id + 1);
    added_id_.emplace(token.content, token.id);
    if (token.special) special_.insert(token.id);
    if (!token.normalized) {
      added_content_.emplace(token.id, token.content);
      raw_.add(token.content, token);
      return;
    }
    const std::string content = detail::normalize(file_.normalizer, token.content);
    added_content_.emplace(token.id, content);  // decodes to what it stood for, as in the reference
    if (!content.empty()) normalized_.add(content, token);
  }

  detail::TokenizerFile file_;  // its model is moved from
  std::unique_ptr<detail::WordModel> model_;
  Digest digest_;
  int32_t end_of_ids_ = 0;
  detail::AddedTokens raw_;
  detail::AddedTokens normalized_;
  std::unordered_map<int32_t, std::string> added_content_;
  detail::StringMap<int32_t> added_id_;
  std::unordered_set<int32_t> special_;
};

}  // namespace

namespace {

namespace fs = std::filesystem;

std::unique_ptr<Tokenizer> open_old(const detail::OldFiles& files, const fs::path& path) {
  const Digest digest = Hasher().add("chiliad vocabulary files 1").add(files.bytes).digest();
  return std::make_unique<FileTokenizer>(detail::parse_tokenizer_file(files.json, path.string()),
                                         path.string(), digest);
}

std::unique_ptr<Tokenizer> open_json(const fs::path& path) {
  const std::string json = io::read_text(path, kMaxFileBytes);
  const Digest digest = Hasher().add("chiliad tokenizer.json 1").add(json).digest();
  return std::make_unique<FileTokenizer>(detail::parse_tokenizer_file(json, path.string()), path.string(),
                                         digest);
}

fs::path file_of_folder(const fs::path& folder) {
  for (const char* name : {"tokenizer.json", "vocab.txt", "vocab.json", "tokenizer.model", "spiece.model",
                           "sentencepiece.bpe.model"}) {
    if (fs::exists(folder / name)) return folder / name;
  }
  throw InvalidInput(folder.string(),
                     "expected tokenizer.json, vocab.txt, vocab.json with merges.txt, tokenizer.model or "
                     "spiece.model, got none of them. Copy one of them beside the weights");
}

}  // namespace

std::unique_ptr<Tokenizer> open_tokenizer(const fs::path& path) {
  const fs::path file = fs::is_directory(path) ? file_of_folder(path) : path;
  if (file.filename() == "vocab.json") return open_old(detail::read_merges_files(file), file);
  if (file.extension() == ".txt") return open_old(detail::read_word_piece_files(file), file);
  if (file.extension() == ".model") return detail::open_piece_tokenizer(file);
  return open_json(file);
}

std::vector<int32_t> fit_tokens(const Tokenizer& tokenizer, std::string_view text, int64_t max_tokens) {
  std::vector<int32_t> ids = tokenizer.encode_with_special(text);
  const auto excess = static_cast<int64_t>(ids.size()) - max_tokens;
  if (excess <= 0) return ids;
  const auto of_text = static_cast<int64_t>(tokenizer.encode(text).size());
  if (excess > of_text) {
    throw InvalidInput("tokenizer",
                       fmt::format("expected room for at least the {} special tokens around a text, got {}. "
                                   "Raise the limit",
                                   static_cast<int64_t>(ids.size()) - of_text, max_tokens));
  }
  const auto end_of_text = ids.begin() + tokenizer.frame_begin() + of_text;
  ids.erase(end_of_text - excess, end_of_text);
  return ids;
}

}  // namespace chiliad::text
