#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "chiliad/index/index.h"

namespace chiliad::index::detail {

/// What read_sidecar makes of a file's bytes; `place` names the file in errors.
[[nodiscard]] Shard parse_sidecar(std::span<const std::byte> file, const std::string& place);
/// What read_manifest makes of a file's text.
[[nodiscard]] Manifest parse_manifest(const std::string& text, const std::string& place);

}  // namespace chiliad::index::detail
