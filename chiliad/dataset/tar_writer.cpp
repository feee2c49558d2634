#include "chiliad/dataset/detail/tar_writer.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "chiliad/base/error.h"
#include "chiliad/dataset/detail/tar_header.h"

namespace chiliad::dataset::detail {
namespace {

constexpr size_t kNameBytes = 100;
constexpr uint64_t kLargestOctal = 0'77777777777ULL;
constexpr char kRegular = '0';
constexpr char kPax = 'x';

std::filesystem::path temporary(const std::filesystem::path& path) {
  return path.string() + ".tmp";
}

void put(TarBlock& block, size_t at, std::string_view text) {
  std::memcpy(block.data() + at, text.data(), text.size());
}

TarBlock header_of(std::string_view name, char type, uint64_t size) {
  TarBlock block{};
  put(block, 0, name.substr(0, kNameBytes));
  put(block, 100, "0000644");
  put(block, 108, "0000000");
  put(block, 116, "0000000");
  put(block, 124, fmt::format("{:011o}", std::min<uint64_t>(size, kLargestOctal)));
  put(block, 136, "00000000000");
  put(block, 148, "        ");
  block[156] = type;
  put(block, 257,
      std::string_view("ustar\0"
                       "00",
                       8));
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  put(block, 148, fmt::format("{:06o}", sum));
  block[154] = '\0';
  return block;
}

/// "LENGTH KEY=VALUE\n", where LENGTH counts itself.
std::string pax_record(std::string_view key, std::string_view value) {
  const size_t rest = key.size() + value.size() + 3;
  size_t length = rest + 1;
  while (length != rest + std::to_string(length).size()) length = rest + std::to_string(length).size();
  return fmt::format("{} {}={}\n", length, key, value);
}

}  // namespace

TarWriter::TarWriter(std::filesystem::path path)
    : path_(std::move(path)), file_(io::File::create(temporary(path_))) {}

void TarWriter::write_member(std::string_view name, char type, std::span<const std::byte> bytes) {
  const TarBlock header = header_of(name, type, bytes.size());
  file_.write(std::as_bytes(std::span(header)));
  file_.write(bytes);
  const size_t padding = (kTarBlock - bytes.size() % kTarBlock) % kTarBlock;
  file_.write(std::string(padding, '\0'));
  size_ += static_cast<int64_t>(kTarBlock + bytes.size() + padding);
}

void TarWriter::add(std::string_view name, std::span<const std::byte> bytes) {
  std::string records;
  if (name.size() > kNameBytes) records += pax_record("path", name);
  if (bytes.size() > kLargestOctal) records += pax_record("size", std::to_string(bytes.size()));
  if (!records.empty()) write_member("pax", kPax, std::as_bytes(std::span(records)));
  write_member(name, kRegular, bytes);
}

int64_t TarWriter::finish() {
  file_.write(std::string(2 * kTarBlock, '\0'));
  size_ += 2 * static_cast<int64_t>(kTarBlock);
  file_.sync();
  file_.close();
  io::rename_path(temporary(path_), path_);
  io::sync_folder(path_.parent_path());
  return size_;
}

}  // namespace chiliad::dataset::detail
