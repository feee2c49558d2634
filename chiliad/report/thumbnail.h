#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "chiliad/image/image.h"
#include "chiliad/index/index.h"

namespace chiliad::report {

/// A small picture for a page.
struct Thumbnail {
  std::vector<std::byte> png;  ///< empty where nothing decodes
  std::string problem;         ///< why it is not whole, or not there; empty where it is whole
  image::Format format = image::Format::kUnknown;
};

/// The picture of a part with its longer side scaled down to `side`, as far as it decodes, whatever its
/// checksum: a damaged one has black where nothing is. Never throws for what it finds.
[[nodiscard]] Thumbnail read_thumbnail(const index::Index& index, const index::Shard& shard,
                                       const index::Part& part, int32_t side);

/// "JPEG", "PNG", ...; "unknown".
[[nodiscard]] const char* format_name(image::Format format);

}  // namespace chiliad::report
