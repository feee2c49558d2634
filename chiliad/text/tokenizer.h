#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chiliad/base/hash.h"

namespace chiliad::text {

/// Text to token ids and back. Immutable; all calls are thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Ids of the text alone, without the frame (bos, eos) of the post-processor. Contents of added tokens in
  /// the text become those tokens. What is not UTF-8 counts as U+FFFD. Throws InvalidInput where a split
  /// pattern of the tokenizer gives up on the text.
  [[nodiscard]] virtual std::vector<int32_t> encode(std::string_view text) const = 0;
  /// The same inside the frame.
  [[nodiscard]] virtual std::vector<int32_t> encode_with_special(std::string_view text) const = 0;
  /// How many ids the frame puts before a text.
  [[nodiscard]] virtual int64_t frame_begin() const { return 0; }
  /// Ids that are in no vocabulary are left out, special tokens where asked; always UTF-8.
  [[nodiscard]] virtual std::string decode(std::span<const int32_t> ids, bool skip_special) const = 0;
  /// One more than the largest id: rows that an embedding needs.
  [[nodiscard]] virtual int32_t vocabulary_size() const = 0;
  /// Id of the token with exactly this content (as it is written in the vocabulary).
  [[nodiscard]] virtual std::optional<int32_t> id_of(std::string_view token) const = 0;
  /// Names this tokenizer and its settings; keys derived columns.
  [[nodiscard]] virtual Digest digest() const = 0;
};

/// Reads a folder or a file: tokenizer.json with a model of type BPE (GPT-2, Llama-2 and 3, Qwen2, CLIP),
/// WordPiece (BERT) or Unigram (T5); vocab.txt (BERT); vocab.json with merges.txt beside it (CLIP, GPT-2,
/// Qwen2); a SentencePiece .model (unigram, BPE). Of a folder the first of these that is there; for all but
/// the first, tokenizer_config.json beside it names special tokens, frame and letter case. `truncation` and
/// `padding` of a file are not applied.
/// Throws InvalidInput naming the part that is wrong, or that is not covered yet (other models, steps).
[[nodiscard]] std::unique_ptr<Tokenizer> open_tokenizer(const std::filesystem::path& path);

/// encode_with_special of as much of the text's begin as fits into `max_tokens`; the frame stays whole.
/// Throws InvalidInput where the frame alone does not fit.
[[nodiscard]] std::vector<int32_t> fit_tokens(const Tokenizer& tokenizer, std::string_view text,
                                              int64_t max_tokens);

}  // namespace chiliad::text
