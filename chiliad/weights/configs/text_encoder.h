#pragma once

#include <filesystem>

#include "chiliad/spec/options/text_encoder.h"
#include "chiliad/weights/key_table.h"

namespace chiliad::weights {

/// Reads the config.json of a BERT, CLIP text or T5 model (of CLIP with both towers, its text half). Throws
/// InvalidInput naming file, key, what was expected and what is there.
[[nodiscard]] spec::TextEncoderOptions read_text_encoder_config(const std::filesystem::path& path);

/// Key layouts of the family's checkpoints: with and without prefix, with old names of norms, buffers, heads
/// and decoders that an encoder does not need.
[[nodiscard]] KeyTable text_encoder_keys(const spec::TextEncoderOptions& options);

}  // namespace chiliad::weights
