#pragma once

#include "chiliad/spec/options/model.h"
#include "chiliad/weights/key_table.h"

namespace chiliad::weights {

/// How keys of published checkpoints of the trained families become ours. llama, qwen2: files of the whole
/// model and of the model without its head, and the language model inside a LLaVA file; a tied head and
/// rotary buffers are left out. pixel_dit: our own.
[[nodiscard]] KeyTable model_keys(const spec::ModelOptions& options);

}  // namespace chiliad::weights
