#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chiliad/text/detail/tokenizer_file.h"

namespace chiliad::text::detail {

/// UTF-8 in, UTF-8 out.
[[nodiscard]] std::string normalize(const std::vector<NormalizerStep>& steps, std::string text);

/// A stretch of text without added tokens.
struct Piece {
  std::string text;
  bool at_start = false;  ///< begins where the whole text begins
};

/// Cuts a piece into words for the model; none is empty.
[[nodiscard]] std::vector<std::string> pre_tokenize(const std::vector<PreTokenizerStep>& steps,
                                                    const Piece& piece);

/// Contents of tokens to text.
[[nodiscard]] std::string decode_tokens(const std::vector<DecoderStep>& steps,
                                        std::vector<std::string> tokens);

}  // namespace chiliad::text::detail
