#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "chiliad/dataset/detail/draft.h"
#include "chiliad/index/columns.h"

namespace chiliad::dataset::detail {

struct FilledShard {
  index::Shard shard;
  std::vector<BadSample> bad;
};

/// Called with the bytes of each sample that was read, from several threads.
using BytesRead = std::function<void(int64_t)>;

/// Reads every part of the draft once: checksums, picture headers, captions. Same result for any number of
/// threads.
[[nodiscard]] FilledShard fill_shard(const std::filesystem::path& root, ShardDraft draft,
                                     const IndexOptions& options, const BytesRead& on_bytes);

/// Cuts the samples into runs of about `block_bytes` payload.
[[nodiscard]] std::vector<index::Block> cut_blocks(const index::Shard& shard, int64_t block_bytes);

}  // namespace chiliad::dataset::detail
