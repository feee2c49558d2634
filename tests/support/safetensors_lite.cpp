#include "tests/support/safetensors_lite.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <span>
#include <stdexcept>

#include "chiliad/base/json_text.h"

namespace chiliad::test {
namespace {

uint64_t little_endian(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i > 0; --i) value = value << 8U | static_cast<uint8_t>(bytes[i - 1]);
  return value;
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::byte> copy_of(std::span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace

std::vector<std::byte> read_bytes_lite(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path.string() + ": cannot be read");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return copy_of(std::as_bytes(std::span(text)));
}

std::map<std::string, LiteTensor> read_safetensors_lite(const std::filesystem::path& path) {
  const auto file = read_bytes_lite(path);
  const std::span<const std::byte> bytes(file);
  if (bytes.size() < 8) throw std::runtime_error(path.string() + ": shorter than a header");
  const uint64_t header_bytes = little_endian(bytes.first(8));
  if (header_bytes > bytes.size() - 8) throw std::runtime_error(path.string() + ": ends inside the header");
  const auto header = parse_json<nlohmann::json>(text_of(bytes.subspan(8, header_bytes)));
  const auto body = bytes.subspan(8 + header_bytes);
  std::map<std::string, LiteTensor> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const uint64_t begin = entry.at("data_offsets").at(0);
    const uint64_t end = entry.at("data_offsets").at(1);
    if (begin > end || end > body.size())
      throw std::runtime_error(path.string() + ": " + name + ": past the end");
    tensors[name] = {entry.at("dtype"), entry.at("shape"), copy_of(body.subspan(begin, end - begin))};
  }
  return tensors;
}

LiteTensor read_npy_lite(const std::filesystem::path& path) {
  const auto file = read_bytes_lite(path);
  const std::span<const std::byte> bytes(file);
  const bool npy = bytes.size() >= 12 && text_of(bytes.subspan(1, 5)) == "NUMPY";
  if (!npy) throw std::runtime_error(path.string() + ": not a .npy file");
  const size_t length_bytes = bytes[6] == std::byte{1} ? 2 : 4;
  const size_t begin = 8 + length_bytes + little_endian(bytes.subspan(8, length_bytes));
  const std::string header = text_of(bytes.subspan(8 + length_bytes, begin - 8 - length_bytes));
  const bool plain = header.find("'|u1'") != std::string::npos && header.find("False") != std::string::npos;
  if (!plain) throw std::runtime_error(path.string() + ": expected |u1 in C order, got " + header);
  LiteTensor tensor{"U8", {}, copy_of(bytes.subspan(begin))};
  const std::string shape = header.substr(header.find('('));
  const std::regex number("[0-9]+");
  for (std::sregex_iterator at(shape.begin(), shape.end(), number), end; at != end; ++at) {
    tensor.shape.push_back(std::stoll(at->str()));
  }
  return tensor;
}

}  // namespace chiliad::test
