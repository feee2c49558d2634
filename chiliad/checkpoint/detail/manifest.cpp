#include "chiliad/checkpoint/detail/manifest.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/checkpoint/detail/fields.h"

namespace chiliad::checkpoint::detail {
namespace {

constexpr const char* kManifestFormat = "chiliad-checkpoint";
constexpr const char* kCommitFormat = "chiliad-commit";
constexpr int64_t kVersion = 1;

int64_t num_blocks_of(int64_t bytes) {
  return (bytes + kBlockBytes - 1) / kBlockBytes;
}

Json file_json(const StoredFile& file) {
  Json blocks = Json::array();
  for (const uint64_t hash : file.blocks) blocks.push_back(hex64_text(hash));
  return {{"path", file.path}, {"bytes", file.bytes}, {"blocks", std::move(blocks)}};
}

Json tensor_json(const StoredTensor& tensor) {
  Json boxes = Json::array();
  for (const StoredBox& box : tensor.boxes) {
    boxes.push_back({{"file", box.file},
                     {"offset", box.box.offset.sizes()},
                     {"size", box.box.size.sizes()},
                     {"at", box.at},
                     {"digest", hex64_text(box.digest)},
                     {"parent", nullptr}});
  }
  return {{"section", tensor.section},
          {"name", tensor.name},
          {"dtype", std::string(dtype_name(tensor.dtype))},
          {"shape", tensor.shape.sizes()},
          {"digest", hex64_text(tensor.digest())},
          {"boxes", std::move(boxes)}};
}

/// Relative, no empty, "." or ".." part, plain characters only.
bool is_safe_path(std::string_view path) {
  if (path.empty() || path.size() > 255) return false;
  while (true) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    for (const char c : part) {
      const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
      if (!plain) return false;
    }
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

StoredFile parse_file(const std::string& place, const Json& json) {
  const Fields fields(json, place);
  StoredFile file;
  file.path = fields.text("path");
  if (!is_safe_path(file.path))
    fields.refuse(fmt::format("path: \"{}\" is not a plain path inside of the folder", file.path));
  file.bytes = fields.integer("bytes", 0, kMaxNumber);
  const Json& blocks = fields.array("blocks");
  if (static_cast<int64_t>(blocks.size()) != num_blocks_of(file.bytes)) {
    fields.refuse(fmt::format("{}: expected {} blocks for {} bytes, got {}", file.path,
                              num_blocks_of(file.bytes), file.bytes, blocks.size()));
  }
  for (const Json& block : blocks) {
    if (!block.is_string()) fields.refuse(fmt::format("{}: blocks: expected strings", file.path));
    file.blocks.push_back(hex64_value(place, block.get_ref<const std::string&>()));
  }
  return file;
}

StoredBox parse_box(const std::string& place, const Json& json, const StoredTensor& tensor,
                    const Manifest& manifest) {
  const Fields fields(json, place);
  StoredBox box;
  box.file = static_cast<size_t>(fields.integer("file", 0, static_cast<int64_t>(manifest.files.size()) - 1));
  box.box = {fields.shape("offset"), fields.shape("size")};
  if (!box.box.inside(tensor.shape)) {
    fields.refuse(fmt::format("box {} is not inside of {}", box.box.to_string(), tensor.shape.to_string()));
  }
  const StoredFile& file = manifest.files[box.file];
  box.at = fields.integer("at", 0, file.bytes);
  const int64_t element_bytes = dtype_bytes(tensor.dtype);
  if (box.at % element_bytes != 0)
    fields.refuse(fmt::format("at: {} is not aligned to {}", box.at, element_bytes));
  const int64_t bytes = box.box.count() * element_bytes;
  if (bytes > file.bytes - box.at) {
    fields.refuse(fmt::format("box {} ends at byte {}, but {} has {}", box.box.to_string(), box.at + bytes,
                              file.path, file.bytes));
  }
  box.digest = fields.hex64("digest");
  fields.null("parent");
  return box;
}

StoredTensor parse_tensor(const std::string& place, const Json& json, const Manifest& manifest) {
  const Fields fields(json, place);
  StoredTensor tensor;
  tensor.section = fields.text("section");
  tensor.name = fields.text("name");
  const std::string here = fmt::format("{}: {}/{}", place, tensor.section, tensor.name);
  const Fields named(json, here);
  if (!is_section_name(tensor.section)) named.refuse("section: is not a plain name");
  tensor.dtype = named.dtype("dtype");
  tensor.shape = named.shape("shape");
  const auto count = tensor.shape.checked_count();
  if (!count.has_value() || *count > kMaxNumber) named.refuse("shape: has too many elements");
  for (const Json& box : named.array("boxes")) tensor.boxes.push_back(parse_box(here, box, tensor, manifest));
  check_coverage(here, tensor);
  if (named.hex64("digest") != tensor.digest()) named.refuse("digest: is not the sum of the boxes' digests");
  return tensor;
}

/// No byte of a file may belong to two boxes.
void check_no_shared_bytes(const std::string& place, const Manifest& manifest) {
  std::vector<std::tuple<size_t, int64_t, int64_t, const StoredTensor*>> ranges;
  for (const StoredTensor& tensor : manifest.tensors) {
    for (const StoredBox& box : tensor.boxes) {
      ranges.emplace_back(box.file, box.at, box.at + box.box.count() * dtype_bytes(tensor.dtype), &tensor);
    }
  }
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i) {
    const auto& [file, begin, end, tensor] = ranges[i];
    const auto& [last_file, last_begin, last_end, last_tensor] = ranges[i - 1];
    if (file != last_file || begin >= last_end) continue;
    throw CorruptData(
        place, fmt::format("{}/{} and {}/{} share bytes of {}", last_tensor->section, last_tensor->name,
                           tensor->section, tensor->name, manifest.files[file].path));
  }
}

void check_unique(const std::string& place, const Manifest& manifest) {
  std::set<std::string_view> paths;
  for (const StoredFile& file : manifest.files) {
    if (!paths.insert(file.path).second)
      throw CorruptData(place, fmt::format("{} is listed twice", file.path));
  }
  std::set<std::pair<std::string_view, std::string_view>> names;
  for (const StoredTensor& tensor : manifest.tensors) {
    if (!names.emplace(tensor.section, tensor.name).second) {
      throw CorruptData(place, fmt::format("{}/{} is listed twice", tensor.section, tensor.name));
    }
  }
}

void check_format(const Fields& fields, const char* format) {
  if (fields.text("format") != format)
    fields.refuse(fmt::format("format: expected \"{}\", got \"{}\"", format, fields.text("format")));
  const int64_t version = fields.integer("version", 1, kMaxNumber);
  if (version != kVersion) fields.refuse(fmt::format("version: expected {}, got {}", kVersion, version));
}

bool overlap(const Box& a, const Box& b) {
  for (int axis = 0; axis < a.offset.rank(); ++axis) {
    if (a.offset[axis] >= b.offset[axis] + b.size[axis] || b.offset[axis] >= a.offset[axis] + a.size[axis])
      return false;
  }
  return true;
}

}  // namespace

uint64_t StoredTensor::digest() const {
  uint64_t sum = 0;
  for (const StoredBox& box : boxes) sum += box.digest;
  return sum;
}

std::string manifest_text(const Manifest& manifest) {
  Json files = Json::array();
  for (const StoredFile& file : manifest.files) files.push_back(file_json(file));
  Json tensors = Json::array();
  for (const StoredTensor& tensor : manifest.tensors) tensors.push_back(tensor_json(tensor));
  const Json json{{"format", kManifestFormat},
                  {"version", kVersion},
                  {"step", manifest.step},
                  {"generation", manifest.generation},
                  {"num_ranks", manifest.num_ranks},
                  {"block_bytes", kBlockBytes},
                  {"parent", nullptr},
                  {"config", manifest.config},
                  {"files", std::move(files)},
                  {"tensors", std::move(tensors)}};
  return json_text(json, 1) + "\n";
}

Manifest parse_manifest(const std::string& place, std::string_view text) {
  const Json json = parse_object(place, text);
  const Fields fields(json, place);
  check_format(fields, kManifestFormat);
  Manifest manifest;
  manifest.step = fields.integer("step", 0, kMaxNumber);
  manifest.generation = fields.integer("generation", 0, kMaxNumber);
  manifest.num_ranks = static_cast<int>(fields.integer("num_ranks", 1, kMaxRanks));
  (void)fields.integer("block_bytes", kBlockBytes, kBlockBytes);
  fields.null("parent");
  manifest.config = fields.text("config");
  for (const Json& file : fields.array("files")) manifest.files.push_back(parse_file(place, file));
  for (const Json& tensor : fields.array("tensors"))
    manifest.tensors.push_back(parse_tensor(place, tensor, manifest));
  check_unique(place, manifest);
  check_no_shared_bytes(place, manifest);
  return manifest;
}

void check_coverage(const std::string& place, const StoredTensor& tensor) {
  std::vector<const Box*> boxes;
  int64_t left = tensor.shape.count();
  for (const StoredBox& stored : tensor.boxes) {
    const int64_t count = stored.box.count();
    if (count == 0) continue;
    if (count > left)
      throw CorruptData(place, fmt::format("box {} covers elements a second time", stored.box.to_string()));
    left -= count;
    boxes.push_back(&stored.box);
  }
  if (left != 0)
    throw CorruptData(place,
                      fmt::format("{} elements of {} are covered by no box", left, tensor.shape.to_string()));
  if (tensor.shape.rank() == 0) return;
  std::sort(boxes.begin(), boxes.end(),
            [](const Box* a, const Box* b) { return a->offset[0] < b->offset[0]; });
  for (size_t i = 0; i < boxes.size(); ++i) {
    const int64_t end = boxes[i]->offset[0] + boxes[i]->size[0];
    for (size_t j = i + 1; j < boxes.size() && boxes[j]->offset[0] < end; ++j) {
      if (!overlap(*boxes[i], *boxes[j])) continue;
      throw CorruptData(place,
                        fmt::format("boxes {} and {} overlap", boxes[i]->to_string(), boxes[j]->to_string()));
    }
  }
}

std::string commit_text(const CommitRecord& record) {
  const Json json{{"format", kCommitFormat},           {"version", kVersion},
                  {"manifest", record.manifest.hex()}, {"step", record.step},
                  {"generation", record.generation},   {"num_files", record.num_files}};
  return json_text(json) + "\n";
}

CommitRecord parse_commit(const std::string& place, std::string_view text) {
  const Json json = parse_object(place, text);
  const Fields fields(json, place);
  check_format(fields, kCommitFormat);
  CommitRecord record;
  const std::string& digest = fields.text("manifest");
  if (digest.size() != 32) fields.refuse("manifest: expected 32 hex digits");
  record.manifest = {hex64_value(place, digest.substr(0, 16)), hex64_value(place, digest.substr(16))};
  record.step = fields.integer("step", 0, kMaxNumber);
  record.generation = fields.integer("generation", 0, kMaxNumber);
  record.num_files = fields.integer("num_files", 0, kMaxNumber);
  if (commit_text(record) != text) throw CorruptData(place, "is not written as its values demand");
  return record;
}

std::string FolderName::to_string() const {
  return fmt::format("step-{}.g{}", step, generation);
}

std::optional<FolderName> parse_folder_name(std::string_view name) {
  constexpr std::string_view kPrefix = "step-";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const size_t dot = name.find(".g");
  if (dot == std::string_view::npos) return std::nullopt;
  FolderName parsed;
  std::from_chars(name.data() + kPrefix.size(), name.data() + dot, parsed.step);
  std::from_chars(name.data() + dot + 2, name.data() + name.size(), parsed.generation);
  if (parsed.step < 0 || parsed.generation < 0 || parsed.to_string() != name) return std::nullopt;
  return parsed;
}

std::vector<FolderName> checkpoint_folders(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::vector<FolderName> found;
  std::error_code error;
  if (!fs::is_directory(folder, error)) return found;
  fs::directory_iterator entries(folder, error);
  if (error) throw Unavailable(folder.string(), "cannot be listed: " + error.message());
  for (const auto& entry : entries) {
    const auto name = parse_folder_name(entry.path().filename().string());
    if (name.has_value() && entry.is_directory(error)) found.push_back(*name);
  }
  std::sort(found.begin(), found.end(), std::greater<>());
  return found;
}

}  // namespace chiliad::checkpoint::detail
