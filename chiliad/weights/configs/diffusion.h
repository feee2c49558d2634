#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "chiliad/spec/options/diffusion.h"

namespace chiliad::weights {

/// The options that a config.json of diffusers means: DiTTransformer2DModel, PixArtTransformer2DModel (and
/// both as the older Transformer2DModel), SD3Transformer2DModel, FluxTransformer2DModel. `place` names it in
/// errors. Throws InvalidInput naming key, expected and got for another class, for values that are not built,
/// for keys that nobody knows, and for values of a wrong kind.
[[nodiscard]] spec::DiffusionOptions parse_diffusion_config(std::string_view json, const std::string& place);

/// The same from a file. Throws InvalidInput if there is none.
[[nodiscard]] spec::DiffusionOptions read_diffusion_config(const std::filesystem::path& path);

/// A config.json that diffusers reads; parse_diffusion_config gives the options back.
[[nodiscard]] std::string write_diffusion_config(const spec::DiffusionOptions& options);

}  // namespace chiliad::weights
