#pragma once

#include <cstddef>
#include <filesystem>

#include "chiliad/checkpoint/detail/manifest.h"

namespace chiliad::checkpoint::detail {

/// Reads file `index` of the manifest once: block checksums, the digest of each box in it, and (for part
/// files) that its safetensors header lists exactly these boxes. Throws CorruptData naming file and tensor.
void verify_file(const std::filesystem::path& root, const Manifest& manifest, size_t index);

}  // namespace chiliad::checkpoint::detail
