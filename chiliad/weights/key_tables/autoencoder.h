#pragma once

#include "chiliad/weights/key_table.h"

namespace chiliad::weights {

/// Keys of AutoencoderKL files, old or new attention names, to ours, which are diffusers' new ones.
[[nodiscard]] KeyTable autoencoder_keys();

/// The other way: our keys to the old attention names (query, key, value, proj_attn), for old readers.
[[nodiscard]] KeyTable old_autoencoder_keys();

}  // namespace chiliad::weights
