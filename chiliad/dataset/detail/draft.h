#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chiliad/dataset/build_index.h"
#include "chiliad/index/columns.h"

namespace chiliad::dataset::detail {

/// A part before its bytes were read.
struct PartDraft {
  uint32_t file = 0;  ///< in ShardDraft::files
  uint64_t offset = 0;
  uint64_t length = 0;
  index::MediaType media = index::MediaType::kOther;
  bool is_caption = false;      ///< its text holds captions
  uint32_t caption_offset = 0;  ///< of a CSV row: the field that is the caption
  uint32_t caption_length = 0;
};

struct SampleDraft {
  std::string key;
  std::vector<PartDraft> parts;
};

/// What a layout knows of a shard before any payload is read.
struct ShardDraft {
  std::vector<index::SourceFile> files;
  std::vector<SampleDraft> samples;
  std::vector<BadSample> bad;  ///< left out of `samples`
};

/// Parts above it are not read; their sample is bad.
inline constexpr uint64_t kMaxPartBytes = 512ULL << 20;
/// Caption files above it are not read as captions.
inline constexpr uint64_t kMaxCaptionBytes = 16ULL << 20;

/// The media type that a lower-case extension (behind the last dot) stands for.
[[nodiscard]] index::MediaType media_of(const std::string& extension);
/// Lower-case text behind the last dot; empty without a dot.
[[nodiscard]] std::string extension_of(const std::string& name);

}  // namespace chiliad::dataset::detail
