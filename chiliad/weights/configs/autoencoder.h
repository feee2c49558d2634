#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "chiliad/spec/options/autoencoder.h"

namespace chiliad::weights {

/// The options that a config.json of diffusers' AutoencoderKL means. `place` names it in errors. Throws
/// InvalidInput naming key, expected and got for another class, block types or activations that are not
/// built, latents with statistics for each channel, keys that nobody knows, and values of a wrong kind.
[[nodiscard]] spec::AutoencoderOptions parse_autoencoder_config(std::string_view json,
                                                                const std::string& place);

/// The same from a file. Throws InvalidInput if there is none.
[[nodiscard]] spec::AutoencoderOptions read_autoencoder_config(const std::filesystem::path& path);

/// A config.json that diffusers reads; parse_autoencoder_config gives the options back.
[[nodiscard]] std::string write_autoencoder_config(const spec::AutoencoderOptions& options);

}  // namespace chiliad::weights
