#pragma once

#include <filesystem>
#include <memory>

#include "chiliad/text/tokenizer.h"

namespace chiliad::text::detail {

/// A SentencePiece `.model` alone: ids and texts of SentencePieceProcessor. Control pieces are in no text;
/// the frame is that of tokenizer_config.json beside the file. Throws InvalidInput.
[[nodiscard]] std::unique_ptr<Tokenizer> open_piece_tokenizer(const std::filesystem::path& path);

}  // namespace chiliad::text::detail
