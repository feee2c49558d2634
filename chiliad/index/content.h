#pragma once

#include "chiliad/base/hash.h"
#include "chiliad/index/index.h"

namespace chiliad::index {

/// Identity of a shard's data: keys, flags, and of every part its kind, size, checksum and captions, in
/// order. Not where the bytes lie, not times: a copy, or the same samples in another archive, has the same
/// digest. Columns that depend on captions are keyed by it. Definition: docs/formats/sidecar.md.
[[nodiscard]] Digest content_digest(const Shard& shard);

/// Identity of a data set: its layout and its shards' content digests, in order.
[[nodiscard]] Digest manifest_digest(const Manifest& manifest);

/// Bytes of all parts of a sample.
[[nodiscard]] uint64_t payload_bytes(const Shard& shard, const Sample& sample);

}  // namespace chiliad::index
