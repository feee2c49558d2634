#include <fmt/core.h>

#include <array>
#include <cstring>

#include "chiliad/base/error.h"
#include "chiliad/index/plan_columns.h"

namespace chiliad::index {
namespace {

struct Header {
  std::array<char, 8> magic{'C', 'H', 'T', 'O', 'T', '\r', '\n', '\x1a'};
  uint32_t version = 1;
  uint32_t reserved = 0;
  uint64_t num_totals = 0;
  uint64_t num_blocks = 0;
  uint64_t checksum = 0;  ///< low half of xxh3-128 of the header up to here, the totals, the blocks
};
static_assert(sizeof(Header) == 40);

uint64_t checksum_of(const Header& header, const BlockTotals& totals) {
  Hasher hasher;
  hasher.add_bytes(as_bytes_of(header).first(offsetof(Header, checksum)));
  hasher.add_bytes(std::as_bytes(std::span(totals.totals)));
  hasher.add_bytes(std::as_bytes(std::span(totals.blocks)));
  return hasher.digest().low;
}

}  // namespace

void write_block_totals(const std::filesystem::path& path, const BlockTotals& totals) {
  Header header;
  header.num_totals = totals.totals.size();
  header.num_blocks = totals.blocks.size();
  header.checksum = checksum_of(header, totals);
  std::vector<std::byte> file;
  const auto append = [&](std::span<const std::byte> bytes) {
    file.insert(file.end(), bytes.begin(), bytes.end());
  };
  append(as_bytes_of(header));
  append(std::as_bytes(std::span(totals.totals)));
  append(std::as_bytes(std::span(totals.blocks)));
  io::make_folders(path.parent_path());
  io::write_atomic(path, file);
}

BlockTotals read_block_totals(const std::filesystem::path& path) {
  const auto fail = [&](const std::string& what) {
    throw CorruptData(path.string(), what + ". Delete the file: it is made again");
  };
  const io::File file = io::File::open_read(path);
  const auto size = static_cast<uint64_t>(file.size());
  Header header;
  if (size < sizeof header) fail(fmt::format("has only {} bytes", size));
  file.read_at(0, std::as_writable_bytes(std::span(&header, 1)));
  if (header.magic != Header{}.magic) fail("header: magic is wrong, this is no table of a plan");
  if (header.version != 1 || header.reserved != 0)
    fail(fmt::format("header: unknown version {}", header.version));
  if (header.num_totals > size / 8 || header.num_blocks > size / 4 ||
      size != sizeof header + 8 * header.num_totals + 4 * header.num_blocks)
    fail(fmt::format("has {} bytes, which do not fit its {} totals and {} blocks", size, header.num_totals,
                     header.num_blocks));
  BlockTotals totals;
  totals.totals.resize(header.num_totals);
  totals.blocks.resize(header.num_blocks);
  file.read_at(sizeof header, std::as_writable_bytes(std::span(totals.totals)));
  file.read_at(static_cast<int64_t>(sizeof header + 8 * header.num_totals),
               std::as_writable_bytes(std::span(totals.blocks)));
  if (header.checksum != checksum_of(header, totals)) fail("checksum is wrong");
  return totals;
}

}  // namespace chiliad::index
