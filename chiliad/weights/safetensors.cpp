#include "chiliad/weights/safetensors.h"

#include <fmt/core.h>

#include <array>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/weights/detail/header.h"
#include "chiliad/weights/detail/strict_json.h"

namespace chiliad::weights {
namespace {

constexpr int64_t kLengthBytes = 8;

uint64_t read_length(const io::File& file) {
  std::array<std::byte, kLengthBytes> bytes{};
  file.read_at(0, bytes);
  uint64_t length = 0;
  for (size_t i = bytes.size(); i-- > 0;) length = length << 8 | std::to_integer<uint64_t>(bytes[i]);
  return length;
}

int64_t checked_length(const io::File& file, int64_t file_bytes) {
  const std::string place = file.path().string();
  if (file_bytes < kLengthBytes) {
    throw CorruptData(place, fmt::format("expected a safetensors file of at least {} bytes, got {}",
                                         kLengthBytes, file_bytes));
  }
  const uint64_t length = read_length(file);
  if (length > static_cast<uint64_t>(kMaxHeaderBytes)) {
    throw CorruptData(
        place, fmt::format("header: expected at most {} bytes, got a length of {}. This is no safetensors "
                           "file, or it is damaged",
                           kMaxHeaderBytes, length));
  }
  if (length > static_cast<uint64_t>(file_bytes - kLengthBytes)) {
    throw CorruptData(
        place, fmt::format("header: expected {} bytes, got {} up to the end of the file. The file is cut",
                           length, file_bytes - kLengthBytes));
  }
  return static_cast<int64_t>(length);
}

}  // namespace

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  SafetensorsFile opened(io::File::open_read(path));
  const int64_t file_bytes = opened.file_.size();
  const int64_t length = checked_length(opened.file_, file_bytes);
  std::string text(static_cast<size_t>(length), '\0');
  opened.file_.read_at(kLengthBytes, std::as_writable_bytes(std::span(text.data(), text.size())));
  opened.data_start_ = kLengthBytes + length;
  detail::Header header =
      detail::parse_header(text, opened.data_start_, file_bytes - opened.data_start_, path.string());
  opened.tensors_ = std::move(header.tensors);
  opened.metadata_ = std::move(header.metadata);
  for (size_t i = 0; i < opened.tensors_.size(); ++i) opened.positions_.emplace(opened.tensors_[i].name, i);
  return opened;
}

const TensorEntry* SafetensorsFile::find(std::string_view name) const {
  const auto found = positions_.find(std::string(name));
  return found == positions_.end() ? nullptr : &tensors_[found->second];
}

void SafetensorsFile::read(std::string_view name, std::span<std::byte> out) const {
  const TensorEntry* tensor = find(name);
  if (tensor == nullptr) {
    throw CorruptData(path().string(),
                      fmt::format("expected a tensor {}, got none", detail::quote_name(name)));
  }
  CHILIAD_CHECK_EQ(static_cast<int64_t>(out.size()), tensor->num_bytes());
  read_part(*tensor, 0, out);
}

void SafetensorsFile::read_part(const TensorEntry& tensor, int64_t offset, std::span<std::byte> out) const {
  const auto length = static_cast<int64_t>(out.size());
  CHILIAD_CHECK(offset >= 0 && length <= tensor.num_bytes() - offset, "part [{}, {}) of the {} bytes of {}",
                offset, offset + length, tensor.num_bytes(), tensor.name);
  if (!out.empty()) file_.read_at(tensor.begin + offset, out);
}

}  // namespace chiliad::weights
