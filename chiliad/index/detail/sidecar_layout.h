#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "chiliad/index/columns.h"

/// The layout of a sidecar, in one place for writer and reader: docs/formats/sidecar.md.
namespace chiliad::index::detail {

inline constexpr std::array<char, 8> kSidecarMagic{'C', 'H', 'I', 'D', 'X', '\r', '\n', '\x1a'};
inline constexpr uint32_t kSidecarVersion = 1;
inline constexpr size_t kColumnAlignment = 8;
inline constexpr int64_t kMaxSidecarBytes = 16LL << 30;
/// Feature bit: a caption must be unescaped before it is text (caption_text.h), or a part has a media type
/// above kJsonLine. Without the bit the file is what readers before it know.
inline constexpr uint64_t kStoredCaptions = 1;

/// The feature bits of a shard; there is one right value.
[[nodiscard]] inline uint64_t features_of(const Shard& shard) {
  for (const Part& part : shard.parts) {
    if (part.media > MediaType::kJsonLine) return kStoredCaptions;
  }
  for (const Caption& caption : shard.captions) {
    if (caption.part < shard.parts.size() && shard.parts[caption.part].media == MediaType::kJson)
      return kStoredCaptions;
  }
  return 0;
}

enum class ColumnType : uint32_t { kU8 = 1, kU16 = 2, kU32 = 3, kU64 = 4, kI64 = 5, kBytes = 6 };

/// Fixed start of the file, little-endian; the column table and the header's checksum follow.
struct SidecarHeader {
  std::array<char, 8> magic = kSidecarMagic;
  uint32_t version = kSidecarVersion;
  uint32_t num_columns = 0;
  uint64_t file_bytes = 0;
  uint64_t features = 0;  ///< bits that a reader must know: kStoredCaptions
  uint64_t content_high = 0;
  uint64_t content_low = 0;
  uint64_t num_files = 0;
  uint64_t num_samples = 0;
  uint64_t num_parts = 0;
  uint64_t num_captions = 0;
  uint64_t num_blocks = 0;
};
static_assert(sizeof(SidecarHeader) == 88);

struct ColumnEntry {
  uint32_t id = 0;
  uint32_t type = 0;
  uint64_t offset = 0;    ///< from the start of the file, a multiple of 8
  uint64_t size = 0;      ///< bytes, without padding
  uint64_t checksum = 0;  ///< xxh3-64
};
static_assert(sizeof(ColumnEntry) == 32);

/// Calls `visit.field(id, name, rows, member)` for every fixed-width column and `visit.strings(id, name,
/// count, at)` (two columns: end offsets `id`, bytes `id + 1`) for every text column, in file order. Ids are
/// never reused.
template <typename ShardType, typename Visitor>
void visit_columns(ShardType& shard, Visitor& visit) {
  visit.strings(
      1, "files.path", shard.files, [](auto& file) -> auto& { return file.path; });
  visit.field(3, "files.size", shard.files, &SourceFile::size);
  visit.field(4, "files.mtime_ns", shard.files, &SourceFile::mtime_ns);
  visit.field(10, "samples.key_hash", shard.samples, &Sample::key_hash);
  visit.field(11, "samples.first_part", shard.samples, &Sample::first_part);
  visit.field(12, "samples.num_parts", shard.samples, &Sample::num_parts);
  visit.field(13, "samples.source", shard.samples, &Sample::source);
  visit.field(14, "samples.first_caption", shard.samples, &Sample::first_caption);
  visit.field(15, "samples.num_captions", shard.samples, &Sample::num_captions);
  visit.field(16, "samples.flags", shard.samples, &Sample::flags);
  visit.field(20, "parts.file", shard.parts, &Part::file);
  visit.field(21, "parts.offset", shard.parts, &Part::offset);
  visit.field(22, "parts.length", shard.parts, &Part::length);
  visit.field(23, "parts.checksum", shard.parts, &Part::checksum);
  visit.field(24, "parts.media", shard.parts, &Part::media);
  visit.field(25, "parts.orientation", shard.parts, &Part::orientation);
  visit.field(26, "parts.image_flags", shard.parts, &Part::image_flags);
  visit.field(27, "parts.width", shard.parts, &Part::width);
  visit.field(28, "parts.height", shard.parts, &Part::height);
  visit.field(30, "captions.part", shard.captions, &Caption::part);
  visit.field(31, "captions.offset", shard.captions, &Caption::offset);
  visit.field(32, "captions.length", shard.captions, &Caption::length);
  visit.field(33, "captions.language", shard.captions, &Caption::language);
  visit.field(40, "blocks.first_sample", shard.blocks, &Block::first_sample);
  visit.field(41, "blocks.num_samples", shard.blocks, &Block::num_samples);
  visit.field(42, "blocks.payload_bytes", shard.blocks, &Block::payload_bytes);
  visit.strings(
      50, "keys", shard.keys, [](auto& key) -> auto& { return key; });
}

template <typename T>
constexpr ColumnType column_type() {
  if constexpr (std::is_same_v<T, int64_t>) return ColumnType::kI64;
  if constexpr (sizeof(T) == 1) return ColumnType::kU8;
  if constexpr (sizeof(T) == 2) return ColumnType::kU16;
  if constexpr (sizeof(T) == 4) return ColumnType::kU32;
  return ColumnType::kU64;
}

}  // namespace chiliad::index::detail
