#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chiliad/checkpoint/detail/manifest.h"
#include "chiliad/io/file.h"

namespace chiliad::checkpoint::detail {

/// Writes one file of a checkpoint, a block at a time, and takes the checksum of each block. Steps of
/// `finish`:
/// 1. the last block  2. fsync  3. rename from .tmp  4. fsync of the folder.
class BlockWriter {
 public:
  /// `root` is the step's folder, `path` the file in it; its folder exists.
  BlockWriter(const std::filesystem::path& root, const std::string& path);
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  [[nodiscard]] StoredFile finish();

 private:
  void put(std::span<const std::byte> block);
  void flush();

  std::filesystem::path target_;
  io::File file_;
  std::vector<std::byte> block_;
  StoredFile stored_;
};

/// Reads a file of a checkpoint. Every byte that it hands out lies in a block whose checksum was right.
/// Not thread-safe; best read in ascending order.
class BlockReader {
 public:
  /// `stored` must outlive it. Throws CorruptData if the file is missing or has another length.
  BlockReader(const std::filesystem::path& root, const StoredFile& stored);
  void read(int64_t offset, std::span<std::byte> out);
  /// Block `index`, valid until the next call.
  [[nodiscard]] std::span<const std::byte> block(int64_t index);
  [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }

 private:
  void load(int64_t index, std::span<std::byte> out) const;

  const StoredFile& stored_;
  io::File file_;
  std::vector<std::byte> block_;
  int64_t index_ = -1;
};

/// A small text of a checkpoint; every failure to get it but an I/O error is CorruptData.
[[nodiscard]] std::string read_stored_text(const std::filesystem::path& path, int64_t max_bytes);

}  // namespace chiliad::checkpoint::detail
