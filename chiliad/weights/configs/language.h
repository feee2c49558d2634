#pragma once

#include <filesystem>
#include <string>

#include "chiliad/spec/options/model.h"

namespace chiliad::weights {

/// A Hugging Face config.json of a Llama or Qwen2 model, with the old and the new spelling of its rotary
/// options. Throws InvalidInput naming the key where it asks for what is not supported (another activation,
/// sliding windows that are used, longrope, ...), CorruptData where it is no JSON.
[[nodiscard]] spec::ModelOptions read_language_config(const std::filesystem::path& path);

/// The same text for a model of ours, with both spellings, since readers know one of them and silently take
/// defaults where they miss it.
[[nodiscard]] std::string language_config_json(const spec::ModelOptions& options);

}  // namespace chiliad::weights
