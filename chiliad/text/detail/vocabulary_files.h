#pragma once

#include <filesystem>
#include <string>

namespace chiliad::text::detail {

/// Older files, read as the tokenizer.json that they stand for. tokenizer_config.json and added_tokens.json
/// beside them name the special tokens and settings; without them those of the original models hold.
struct OldFiles {
  std::string json;   ///< of a tokenizer.json
  std::string bytes;  ///< all that was read, for the digest
};

/// BERT's vocab.txt: a token a line. Throws InvalidInput.
[[nodiscard]] OldFiles read_word_piece_files(const std::filesystem::path& vocab);
/// vocab.json with merges.txt beside it, of CLIP, GPT-2 or Qwen2. Throws InvalidInput.
[[nodiscard]] OldFiles read_merges_files(const std::filesystem::path& vocab);

/// Which ids stand around a text that goes through a SentencePiece model: tokenizer_config.json in `folder`
/// says, by its class or its flags; without one, none does.
struct PieceFrame {
  bool begin = false;
  bool end = false;
  std::string bytes;  ///< of the config
};
[[nodiscard]] PieceFrame read_piece_frame(const std::filesystem::path& folder);

}  // namespace chiliad::text::detail
