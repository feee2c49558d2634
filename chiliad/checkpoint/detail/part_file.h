#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "chiliad/checkpoint/detail/manifest.h"
#include "chiliad/checkpoint/snapshot.h"

namespace chiliad::checkpoint::detail {

/// "model/rank-00003.safetensors"
[[nodiscard]] std::string part_path(const std::string& section, int rank);

/// Name of a box in its file: that of the tensor, and with #2, #3, ... behind it for further boxes of the
/// tensor there. `earlier`: how many of them come before.
[[nodiscard]] std::string entry_name(const std::string& tensor, int64_t earlier);

struct WrittenPart {
  StoredFile file;
  std::vector<int64_t> at;  ///< byte offset of each box, in the order given
};

/// Writes the boxes of one section of one rank as safetensors: docs/formats/checkpoint.md. Boxes are not
/// empty; those of one tensor are disjoint. The file is durable on return.
[[nodiscard]] WrittenPart write_part(const std::filesystem::path& root, const std::string& path,
                                     std::span<const OwnedBox* const> boxes);

}  // namespace chiliad::checkpoint::detail
