#pragma once

#include <string>
#include <vector>

#include "chiliad/spec/options/model.h"
#include "chiliad/weights/key_table.h"

namespace chiliad::weights {

/// How keys of published checkpoints of the trained families become ours. llama, qwen2: files of the whole
/// model and of the model without its head, and the language model inside a LLaVA file; a tied head and
/// rotary buffers are left out. dit, pixart, sd3, flux, autoencoder: as in key_tables/diffusion.h and
/// autoencoder.h. pixel_dit: our own.
[[nodiscard]] KeyTable model_keys(const spec::ModelOptions& options);

/// The other way: the keys that one of our parameters has in a published checkpoint; several where its layout
/// repeats it.
[[nodiscard]] std::vector<std::string> published_keys_of(const spec::ModelOptions& options,
                                                         const std::string& parameter);

}  // namespace chiliad::weights
