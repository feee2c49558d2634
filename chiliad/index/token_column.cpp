#include <fmt/core.h>

#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/index/index.h"
#include "chiliad/io/file.h"

namespace chiliad::index {
namespace {

/// The whole file: this header, then `count` u32, little-endian. docs/formats/sidecar.md.
struct TokenHeader {
  std::array<char, 8> magic{'C', 'H', 'T', 'O', 'K', '\r', '\n', '\x1a'};
  uint32_t version = 1;
  uint32_t reserved = 0;
  uint64_t count = 0;
  uint64_t checksum = 0;  ///< low half of xxh3-128 of the header up to here and the counts
};
static_assert(sizeof(TokenHeader) == 32);

uint64_t checksum_of(const TokenHeader& header, std::span<const uint32_t> counts) {
  Hasher hasher;
  hasher.add_bytes(as_bytes_of(header).first(offsetof(TokenHeader, checksum)));
  hasher.add_bytes(std::as_bytes(counts));
  return hasher.digest().low;
}

}  // namespace

std::filesystem::path token_column_path(const std::filesystem::path& folder, const Digest& shard,
                                        const Digest& tokenizer) {
  return folder / "tokens" / fmt::format("{}-{}.chtok", shard.hex(), tokenizer.hex());
}

void write_token_column(const std::filesystem::path& path, const TokenColumn& column) {
  TokenHeader header;
  header.count = column.caption_tokens.size();
  header.checksum = checksum_of(header, column.caption_tokens);
  std::vector<std::byte> file(sizeof header + column.caption_tokens.size() * sizeof(uint32_t));
  std::memcpy(file.data(), &header, sizeof header);
  const auto counts = std::as_bytes(std::span(column.caption_tokens));
  std::copy(counts.begin(), counts.end(), file.begin() + sizeof header);
  io::make_folders(path.parent_path());
  io::write_atomic(path, file);
}

TokenColumn read_token_column(const std::filesystem::path& path, size_t num_captions) {
  const auto fail = [&](const std::string& what) {
    throw CorruptData(path.string(), what + ". Delete the file: it is made again");
  };
  const int64_t expected = static_cast<int64_t>(sizeof(TokenHeader) + num_captions * sizeof(uint32_t));
  const io::File file = io::File::open_read(path);
  const int64_t size = file.size();
  if (size != expected) fail(fmt::format("size: has {} bytes, expected {}", size, expected));
  TokenHeader header;
  file.read_at(0, std::as_writable_bytes(std::span(&header, 1)));
  if (header.magic != TokenHeader{}.magic) fail("header: magic is wrong, this is no token column");
  if (header.version != 1 || header.reserved != 0)
    fail(fmt::format("header: unknown version {}", header.version));
  if (header.count != num_captions)
    fail(fmt::format("header: {} captions, expected {}", header.count, num_captions));
  TokenColumn column;
  column.caption_tokens.resize(num_captions);
  file.read_at(sizeof header, std::as_writable_bytes(std::span(column.caption_tokens)));
  if (header.checksum != checksum_of(header, column.caption_tokens)) fail("counts: checksum is wrong");
  return column;
}

}  // namespace chiliad::index
