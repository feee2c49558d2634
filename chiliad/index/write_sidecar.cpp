#include <bit>
#include <cstring>
#include <string_view>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/index/detail/sidecar_layout.h"
#include "chiliad/index/index.h"
#include "chiliad/io/file.h"

namespace chiliad::index {
namespace {

using detail::ColumnEntry;
using detail::ColumnType;
using detail::SidecarHeader;

static_assert(std::endian::native == std::endian::little, "columns are written as they lie in memory");

/// Collects the columns' bytes, each padded to the alignment, and their entries with offsets from the first
/// column.
class ColumnWriter {
 public:
  template <typename Row, typename T>
  void field(uint32_t id, const char*, const std::vector<Row>& rows, T Row::*member) {
    begin(id, detail::column_type<T>());
    for (const Row& row : rows) append(&(row.*member), sizeof(T));
    end();
  }

  template <typename Row, typename Text>
  void strings(uint32_t id, const char*, const std::vector<Row>& rows, const Text& text_of) {
    begin(id, ColumnType::kU64);
    uint64_t text_end = 0;
    for (const Row& row : rows) {
      text_end += text_of(row).size();
      append(&text_end, sizeof text_end);
    }
    end();
    begin(id + 1, ColumnType::kBytes);
    for (const Row& row : rows) append(text_of(row).data(), text_of(row).size());
    end();
  }

  std::vector<ColumnEntry> entries;
  std::vector<std::byte> bytes;

 private:
  void begin(uint32_t id, ColumnType type) {
    entries.push_back({id, static_cast<uint32_t>(type), bytes.size(), 0, 0});
  }
  void append(const void* data, size_t size) {
    const auto* first = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), first, first + size);
  }
  void end() {
    ColumnEntry& entry = entries.back();
    entry.size = bytes.size() - entry.offset;
    entry.checksum = hash64(std::span(bytes).subspan(entry.offset));
    bytes.resize((bytes.size() + detail::kColumnAlignment - 1) / detail::kColumnAlignment *
                 detail::kColumnAlignment);
  }
};

void append_bytes(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

}  // namespace

void write_sidecar(const std::filesystem::path& path, const Shard& shard) {
  CHILIAD_CHECK_EQ(shard.keys.size(), shard.samples.size());
  ColumnWriter columns;
  detail::visit_columns(shard, columns);

  SidecarHeader header;
  header.num_columns = static_cast<uint32_t>(columns.entries.size());
  header.features = detail::features_of(shard);
  header.content_high = shard.content.high;
  header.content_low = shard.content.low;
  header.num_files = shard.files.size();
  header.num_samples = shard.samples.size();
  header.num_parts = shard.parts.size();
  header.num_captions = shard.captions.size();
  header.num_blocks = shard.blocks.size();
  const size_t table_bytes = columns.entries.size() * sizeof(ColumnEntry);
  const size_t header_bytes = sizeof header + table_bytes + sizeof(uint64_t);
  header.file_bytes = header_bytes + columns.bytes.size();
  for (ColumnEntry& entry : columns.entries) entry.offset += header_bytes;

  std::vector<std::byte> file;
  file.reserve(header.file_bytes);
  append_bytes(file, as_bytes_of(header));
  append_bytes(file, std::as_bytes(std::span(columns.entries)));
  const uint64_t checksum = hash64(file);
  append_bytes(file, as_bytes_of(checksum));
  append_bytes(file, columns.bytes);
  io::write_atomic(path, file);
}

}  // namespace chiliad::index
