#pragma once

#include <memory>

#include "chiliad/text/tokenizer.h"

namespace chiliad::text::detail {

/// UTF-8 bytes as ids (byte + 2, as ByteTokenizer) of texts of any length, unlike captions.
[[nodiscard]] std::unique_ptr<Tokenizer> plain_bytes();

}  // namespace chiliad::text::detail
