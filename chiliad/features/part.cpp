#include "chiliad/features/part.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "chiliad/base/error.h"
#include "chiliad/io/file.h"
#include "chiliad/weights/safetensors.h"

namespace chiliad::features {
namespace {

constexpr std::string_view kSecond = ".2";
constexpr std::string_view kColumn = "column";
constexpr std::string_view kChecksum = "xxh3.";
constexpr std::string_view kRefused = "refused.";

std::string name_of(FeatureId id) {
  return fmt::format("{}{}", id.number, id.second ? kSecond : "");
}

FeatureId id_of(std::string_view name, const std::filesystem::path& path) {
  FeatureId id;
  const std::string_view whole = name;
  id.second = name.ends_with(kSecond);
  if (id.second) name.remove_suffix(kSecond.size());
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id.number);
  if (error != std::errc() || end != name.data() + name.size() || name_of(id) != whole)
    throw CorruptData(path.string(), fmt::format("tensor '{}': expected a number", whole));
  return id;
}

uint64_t checksum_of(const weights::Metadata& metadata, const std::string& name,
                     const std::filesystem::path& path) {
  const auto found = metadata.find(std::string(kChecksum) + name);
  uint64_t value = 0;
  if (found != metadata.end()) {
    const std::string& text = found->second;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (error == std::errc() && end == text.data() + text.size()) return value;
  }
  throw CorruptData(path.string(), fmt::format("tensor '{}' has no checksum", name));
}

}  // namespace

void write_part(const std::filesystem::path& path, const Digest& column, const Part& part) {
  std::vector<weights::TensorBytes> tensors;
  weights::Metadata metadata{{std::string(kColumn), column.hex()}};
  for (const Feature& feature : part.features) {
    const std::string name = name_of(feature.id);
    metadata.emplace(std::string(kChecksum) + name,
                     fmt::format("{:016x}", hash64(std::span<const std::byte>(feature.bytes))));
    tensors.push_back({{name, feature.dtype, feature.shape}, feature.bytes});
  }
  for (const auto& [number, reason] : part.refused)
    metadata.emplace(fmt::format("{}{}", kRefused, number), reason);
  // Several processes may make the same part: each under a name of its own until it is whole.
  const std::filesystem::path partial = path.string() + fmt::format(".tmp-{}", ::getpid());
  auto file = io::File::create(partial);
  weights::write_safetensors(file, tensors, metadata);
  file.sync();
  file.close();
  io::rename_path(partial, path);
  io::sync_folder(path.parent_path());
}

namespace {

PartContent read_checked(const std::filesystem::path& path, const Digest& column) {
  const auto file = weights::SafetensorsFile::open(path);
  const auto key = file.metadata().find(std::string(kColumn));
  if (key == file.metadata().end() || key->second != column.hex())
    throw CorruptData(path.string(), fmt::format("expected a part of column {}, got {}", column.hex(),
                                                 key == file.metadata().end() ? "none" : key->second));
  PartContent content;
  for (const auto& tensor : file.tensors()) {
    content.entries.push_back({id_of(tensor.name, path), tensor.dtype, tensor.shape, tensor.begin,
                               tensor.num_bytes(), checksum_of(file.metadata(), tensor.name, path)});
  }
  std::sort(content.entries.begin(), content.entries.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  for (const auto& [name, value] : file.metadata()) {
    if (!name.starts_with(kRefused)) continue;
    content.refused.emplace(id_of(std::string_view(name).substr(kRefused.size()), path).number, value);
  }
  return content;
}

}  // namespace

PartContent read_part(const std::filesystem::path& path, const Digest& column) {
  try {
    return read_checked(path, column);
  } catch (const CorruptData& error) {
    const std::string text = error.what();
    const size_t begin = error.place().empty() ? 0 : error.place().size() + 2;
    throw CorruptData(error.place(),
                      fmt::format("{}. Remove {} and run `chiliad encode RUN.yaml` again, which "
                                  "makes this part anew",
                                  text.substr(begin), path.filename().string()));
  }
}

}  // namespace chiliad::features
