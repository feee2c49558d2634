#pragma once

#include <string>
#include <vector>

#include "chiliad/spec/options/diffusion.h"
#include "chiliad/weights/key_table.h"

namespace chiliad::weights {

/// Keys of diffusers' files to ours, which are theirs but for what they repeat (the embedder of times and
/// classes in each block of DiT), and keys of the original files of DiT and PixArt (fused qkv, kv_linear).
[[nodiscard]] KeyTable diffusion_keys(const spec::DiffusionOptions& options);

/// The keys that one of our parameters has in a diffusers file; several where the file repeats it.
[[nodiscard]] std::vector<std::string> diffusers_keys_of(const spec::DiffusionOptions& options,
                                                         const std::string& parameter);

}  // namespace chiliad::weights
