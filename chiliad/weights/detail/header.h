#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "chiliad/weights/safetensors.h"

namespace chiliad::weights::detail {

struct Header {
  std::vector<TensorEntry> tensors;  ///< offsets from the start of the file, in the order of their bytes
  Metadata metadata;
};

/// Reads the JSON `text` of a header (without its length) whose data are the `data_bytes` bytes from
/// `data_start`. Throws CorruptData(place, ...) for the first violation.
[[nodiscard]] Header parse_header(std::string_view text, int64_t data_start, int64_t data_bytes,
                                  const std::string& place);

inline constexpr std::string_view kMetadataKey = "__metadata__";
inline constexpr int kMaxRank = 32;

}  // namespace chiliad::weights::detail
