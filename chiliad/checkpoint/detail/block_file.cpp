#include "chiliad/checkpoint/detail/block_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "chiliad/base/error.h"

namespace chiliad::checkpoint::detail {
namespace {

std::filesystem::path temporary_of(std::filesystem::path path) {
  path += ".tmp";
  return path;
}

io::File open_stored(const std::filesystem::path& path, int64_t bytes) {
  const auto stamp = io::stat_file(path);
  if (!stamp.has_value()) throw CorruptData(path.string(), "is missing");
  if (stamp->size != bytes)
    throw CorruptData(path.string(), fmt::format("expected {} bytes, got {}", bytes, stamp->size));
  try {
    return io::File::open_read(path);
  } catch (const InvalidInput& error) {
    throw CorruptData(path.string(), error.what());
  }
}

}  // namespace

BlockWriter::BlockWriter(const std::filesystem::path& root, const std::string& path)
    : target_(root / path), file_(io::File::create(temporary_of(target_))) {
  stored_.path = path;
}

void BlockWriter::write(std::span<const std::byte> bytes) {
  stored_.bytes += static_cast<int64_t>(bytes.size());
  constexpr auto kWhole = static_cast<size_t>(kBlockBytes);
  while (!bytes.empty()) {
    if (block_.empty() && bytes.size() >= kWhole) {  // needs no copy
      put(bytes.first(kWhole));
      bytes = bytes.subspan(kWhole);
      continue;
    }
    const size_t part = std::min(bytes.size(), kWhole - block_.size());
    block_.insert(block_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(part));
    bytes = bytes.subspan(part);
    if (block_.size() == kWhole) flush();
  }
}

void BlockWriter::put(std::span<const std::byte> block) {
  stored_.blocks.push_back(hash64(block));
  file_.write(block);
}

void BlockWriter::flush() {
  if (block_.empty()) return;
  put(block_);
  block_.clear();
}

StoredFile BlockWriter::finish() {
  flush();
  file_.sync();
  file_.close();
  io::rename_path(temporary_of(target_), target_);
  io::sync_folder(target_.parent_path());
  return std::move(stored_);
}

BlockReader::BlockReader(const std::filesystem::path& root, const StoredFile& stored)
    : stored_(stored), file_(open_stored(root / stored.path, stored.bytes)) {}

void BlockReader::load(int64_t index, std::span<std::byte> out) const {
  file_.read_at(index * kBlockBytes, out);
  const uint64_t expected = stored_.blocks[static_cast<size_t>(index)];
  const uint64_t actual = hash64(out);
  if (actual == expected) return;
  throw CorruptData(file_.path().string(),
                    fmt::format("block {} (bytes {} to {}): expected checksum {:016x}, got {:016x}", index,
                                index * kBlockBytes, index * kBlockBytes + static_cast<int64_t>(out.size()),
                                expected, actual));
}

std::span<const std::byte> BlockReader::block(int64_t index) {
  if (index != index_) {
    index_ = -1;
    block_.resize(static_cast<size_t>(std::min(kBlockBytes, stored_.bytes - index * kBlockBytes)));
    load(index, block_);
    index_ = index;
  }
  return block_;
}

void BlockReader::read(int64_t offset, std::span<std::byte> out) {
  while (!out.empty()) {
    const int64_t index = offset / kBlockBytes;
    const auto within = static_cast<size_t>(offset % kBlockBytes);
    if (within == 0 && out.size() >= static_cast<size_t>(kBlockBytes) && index != index_) {
      load(index, out.first(kBlockBytes));  // a whole block needs no copy
      out = out.subspan(kBlockBytes);
      offset += kBlockBytes;
      continue;
    }
    const std::span<const std::byte> bytes = block(index).subspan(within);
    const size_t part = std::min(bytes.size(), out.size());
    std::memcpy(out.data(), bytes.data(), part);
    out = out.subspan(part);
    offset += static_cast<int64_t>(part);
  }
}

std::string read_stored_text(const std::filesystem::path& path, int64_t max_bytes) {
  const auto stamp = io::stat_file(path);
  if (!stamp.has_value()) throw CorruptData(path.string(), "is missing");
  try {
    return io::read_text(path, max_bytes);
  } catch (const InvalidInput& error) {
    throw CorruptData(error.place(), std::string(error.what()).substr(error.place().size() + 2));
  }
}

}  // namespace chiliad::checkpoint::detail
