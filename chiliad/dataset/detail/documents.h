#pragma once

#include <filesystem>
#include <vector>

#include "chiliad/dataset/detail/draft.h"
#include "chiliad/dataset/detail/loose_files.h"

namespace chiliad::dataset::detail {

/// Finds the lines of a JSON Lines file; blank ones are passed over. A line is a sample with the key
/// FILE:NUMBER, counted from 1. What is in a line is looked at by fill_shard.
[[nodiscard]] ShardDraft draft_line_shard(const std::filesystem::path& root, const index::SourceFile& file);

/// Text files as documents, in shards of about `shard_bytes`; the key is the path without extension.
[[nodiscard]] std::vector<ShardDraft> draft_text_shards(const SourceListing& listing, int64_t shard_bytes);

}  // namespace chiliad::dataset::detail
