#include <fmt/core.h>

#include <cstring>
#include <string_view>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/index/detail/check_shard.h"
#include "chiliad/index/detail/parse.h"
#include "chiliad/index/detail/sidecar_layout.h"
#include "chiliad/index/index.h"
#include "chiliad/io/file.h"

namespace chiliad::index {
namespace {

using detail::ColumnEntry;
using detail::ColumnType;
using detail::SidecarHeader;

/// Walks the columns in file order and demands exactly the bytes that the writer makes.
class ColumnReader {
 public:
  ColumnReader(std::string place, std::span<const std::byte> file, std::span<const std::byte> table,
               size_t offset)
      : place_(std::move(place)), file_(file), table_(table), end_(offset) {}

  template <typename Row, typename T>
  void field(uint32_t id, const char* name, std::vector<Row>& rows, T Row::*member) {
    const auto bytes = next(id, name, detail::column_type<T>());
    require_size(name, bytes.size(), rows.size(), sizeof(T));
    for (size_t i = 0; i < rows.size(); ++i)
      std::memcpy(&(rows[i].*member), bytes.data() + i * sizeof(T), sizeof(T));
  }

  template <typename Row, typename Text>
  void strings(uint32_t id, const char* name, std::vector<Row>& rows, const Text& text_of) {
    const auto ends = next(id, name, ColumnType::kU64);
    require_size(name, ends.size(), rows.size(), sizeof(uint64_t));
    const auto text = next(id + 1, name, ColumnType::kBytes);
    uint64_t begin = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      uint64_t stop = 0;
      std::memcpy(&stop, ends.data() + i * sizeof stop, sizeof stop);
      if (stop < begin || stop > text.size()) fail(name, fmt::format("row {} ends at byte {}", i, stop));
      text_of(rows[i]).assign(reinterpret_cast<const char*>(text.data()) + begin, stop - begin);
      begin = stop;
    }
    if (begin != text.size()) fail(name, fmt::format("has {} bytes, expected {}", text.size(), begin));
  }

  void finish() const {
    if (used_ * sizeof(ColumnEntry) != table_.size()) fail("column table", "holds unknown columns");
    if (end_ != file_.size()) fail("end", fmt::format("is at byte {}, expected {}", file_.size(), end_));
  }

  [[noreturn]] void fail(const char* section, const std::string& what) const {
    throw CorruptData(place_, fmt::format("{}: {}. Index again", section, what));
  }

 private:
  void require_size(const char* name, size_t bytes, size_t rows, size_t width) const {
    if (bytes / width == rows && bytes % width == 0) return;
    fail(name, fmt::format("has {} bytes, expected {} rows of {}", bytes, rows, width));
  }

  std::span<const std::byte> next(uint32_t id, const char* name, ColumnType type) {
    if ((used_ + 1) * sizeof(ColumnEntry) > table_.size()) fail(name, "is missing");
    ColumnEntry entry;
    std::memcpy(&entry, table_.data() + used_ * sizeof entry, sizeof entry);
    ++used_;
    if (entry.id != id || entry.type != static_cast<uint32_t>(type)) {
      fail(name, fmt::format("expected column {} of type {}, got {} of type {}", id,
                             static_cast<uint32_t>(type), entry.id, entry.type));
    }
    if (entry.offset != end_ || entry.size > file_.size() - end_) {
      fail(name,
           fmt::format("{} bytes at {} do not lie where the columns before end", entry.size, entry.offset));
    }
    const auto bytes = file_.subspan(entry.offset, entry.size);
    if (hash64(bytes) != entry.checksum) fail(name, "checksum is wrong");
    end_ += entry.size;
    for (; end_ % detail::kColumnAlignment != 0; ++end_) {
      if (end_ >= file_.size() || file_[end_] != std::byte{0}) fail(name, "padding is not zero");
    }
    return bytes;
  }

  std::string place_;
  std::span<const std::byte> file_;
  std::span<const std::byte> table_;
  size_t end_;
  size_t used_ = 0;
};

[[noreturn]] void fail_header(const std::string& place, const std::string& what) {
  throw CorruptData(place, fmt::format("header: {}. Index again", what));
}

/// Checks everything in the header that does not need the columns.
SidecarHeader read_header(const std::string& place, std::span<const std::byte> file) {
  SidecarHeader header;
  if (file.size() < sizeof header) fail_header(place, fmt::format("file has only {} bytes", file.size()));
  std::memcpy(&header, file.data(), sizeof header);
  if (header.magic != detail::kSidecarMagic) fail_header(place, "magic is wrong, this is no sidecar");
  if (header.version != detail::kSidecarVersion) {
    fail_header(place,
                fmt::format("format version {}, expected {}", header.version, detail::kSidecarVersion));
  }
  if (header.num_columns > (file.size() - sizeof header) / sizeof(ColumnEntry)) {
    fail_header(place, fmt::format("{} columns do not fit {} bytes", header.num_columns, file.size()));
  }
  const size_t checksum_at = sizeof header + header.num_columns * sizeof(ColumnEntry);
  uint64_t checksum = 0;
  if (file.size() - checksum_at < sizeof checksum) fail_header(place, "is cut");
  std::memcpy(&checksum, file.data() + checksum_at, sizeof checksum);
  if (checksum != hash64(file.first(checksum_at))) fail_header(place, "checksum is wrong");
  if ((header.features & ~detail::kStoredCaptions) != 0) {
    throw CorruptData(place,
                      fmt::format("header: feature bits {:#x} are of a later version of chiliad. Use that "
                                  "version, or index again with this one",
                                  header.features));
  }
  if (header.file_bytes != file.size()) {
    fail_header(place, fmt::format("file has {} bytes, expected {}", file.size(), header.file_bytes));
  }
  return header;
}

/// Makes `count` rows; each takes at least `row_bytes` bytes of the file, so a count is never trusted beyond
/// its size.
template <typename Row>
void make_rows(const std::string& place, std::vector<Row>& rows, uint64_t count, size_t row_bytes,
               size_t file_bytes) {
  if (count > file_bytes / row_bytes)
    fail_header(place, fmt::format("count {} does not fit the file", count));
  rows.resize(count);
}

}  // namespace

namespace detail {

Shard parse_sidecar(std::span<const std::byte> file, const std::string& place) {
  const SidecarHeader header = read_header(place, file);
  Shard shard;
  shard.content = {header.content_high, header.content_low};
  make_rows(place, shard.files, header.num_files, 24, file.size());
  make_rows(place, shard.samples, header.num_samples, 24, file.size());
  make_rows(place, shard.keys, header.num_samples, 8, file.size());
  make_rows(place, shard.parts, header.num_parts, 40, file.size());
  make_rows(place, shard.captions, header.num_captions, 16, file.size());
  make_rows(place, shard.blocks, header.num_blocks, 16, file.size());

  const size_t table_bytes = header.num_columns * sizeof(ColumnEntry);
  const auto table = file.subspan(sizeof header, table_bytes);
  ColumnReader reader(place, file, table, sizeof header + table_bytes + sizeof(uint64_t));
  visit_columns(shard, reader);
  reader.finish();
  check_shard(shard, place);
  if (header.features != features_of(shard)) {
    fail_header(place,
                fmt::format("feature bits are {:#x}, expected {:#x}", header.features, features_of(shard)));
  }
  return shard;
}

}  // namespace detail

Shard read_sidecar(const std::filesystem::path& path) {
  return detail::parse_sidecar(io::read_file(path, detail::kMaxSidecarBytes), path.string());
}

}  // namespace chiliad::index
