#pragma once

#include <filesystem>

#include "chiliad/dataset/detail/draft.h"

namespace chiliad::dataset::detail {

/// Reads a tar's headers and groups its members into samples by WebDataset's rule: the key is the name up to
/// the first dot of the basename, and a sample's members stand together. Samples that are not whole (parts
/// apart, a part twice, a link, no picture, behind a damaged place) are in `bad`, never in `samples`. Throws
/// InvalidInput if the file is no tar.
[[nodiscard]] ShardDraft draft_tar_shard(const std::filesystem::path& root, const index::SourceFile& tar);

}  // namespace chiliad::dataset::detail
