#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "chiliad/base/hash.h"

namespace chiliad::index {

/// What a part is, which also says how its captions are stored (caption_text.h).
enum class MediaType : uint8_t {
  kOther = 0,
  kImage = 1,
  kText = 2,          ///< captions are the bytes themselves
  kTuxpaintText = 3,  ///< as kText
  kJson = 4,          ///< captions are string literals in it, with their quotes
  kJsonLine = 5,      ///< a line of JSON Lines; its caption is the line, the document its string `text`
  kConversation = 6,  ///< a record of a conversation; its caption is the whole record
  kCsv = 7            ///< a row of CSV or TSV; captions are fields of it, with their quotes
};

/// Where a part's bytes lie: in a file of the source (`file` counts in Shard::files) at [offset, offset +
/// length).
struct Part {
  uint32_t file = 0;
  uint64_t offset = 0;
  uint64_t length = 0;
  uint64_t checksum = 0;  ///< xxh3-64 of the bytes
  MediaType media = MediaType::kOther;
  uint8_t orientation = 1;
  uint16_t image_flags = 0;  ///< image::Flag bits
  uint32_t width = 0;        ///< after orientation; 0 for other media
  uint32_t height = 0;
};

/// A caption is a range of bytes inside a text part.
struct Caption {
  uint32_t part = 0;      ///< in the shard
  uint32_t offset = 0;    ///< from the start of the part
  uint32_t length = 0;    ///< bytes as stored; of plain text trimmed and without BOM
  uint32_t language = 0;  ///< up to 4 ASCII letters, little-endian, lower case ("en", "zh"); 0: unknown
};

/// One sample; its parts and captions are runs in the shard's tables.
struct Sample {
  uint64_t key_hash = 0;
  uint32_t first_part = 0;
  uint16_t num_parts = 0;
  uint16_t source = 0;
  uint32_t first_caption = 0;
  uint16_t num_captions = 0;
  uint16_t flags = 0;  ///< SampleFlag bits
};

/// Facts that planning must know of a sample.
enum SampleFlag : uint16_t { kHasImage = 1 << 0, kBadImage = 1 << 1, kNoCaption = 1 << 2 };

/// A file of the source: for a tar the one archive; for loose files each of them.
struct SourceFile {
  std::string path;  ///< relative to the source root; bytes, not necessarily UTF-8
  int64_t size = 0;
  int64_t mtime_ns = 0;
};

/// A run of samples whose payload is read together.
struct Block {
  uint32_t first_sample = 0;
  uint32_t num_samples = 0;
  uint64_t payload_bytes = 0;
};

/// All columns of one shard, in memory.
struct Shard {
  Digest content;  ///< over names, sizes and checksums of all parts: what derived columns are keyed by
  std::vector<SourceFile> files;
  std::vector<Sample> samples;
  std::vector<Part> parts;
  std::vector<Caption> captions;
  std::vector<Block> blocks;
  std::vector<std::string> keys;  ///< for messages; one a sample
  std::string root;               ///< not stored: Manifest::root, set by Index
};

[[nodiscard]] uint32_t language_code(std::string_view name);
[[nodiscard]] std::string language_name(uint32_t code);

}  // namespace chiliad::index
