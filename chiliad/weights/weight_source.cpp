#include "chiliad/weights/weight_source.h"

#include <fmt/format.h>

#include <utility>

#include "chiliad/base/error.h"

namespace chiliad::weights {
namespace {

namespace fs = std::filesystem;

fs::path file_of(const fs::path& path) {
  if (!fs::is_directory(path)) return path;
  for (const char* suffix : {".safetensors.index.json", ".safetensors"}) {
    for (const char* stem : {"model", "diffusion_pytorch_model"}) {
      const fs::path file = path / (std::string(stem) + suffix);
      if (fs::exists(file)) return file;
    }
  }
  const bool has_pickle = fs::exists(path / "pytorch_model.bin");
  throw InvalidInput(
      path.string(),
      fmt::format("weights: expected model.safetensors, diffusion_pytorch_model.safetensors or "
                  "one of their indices, got {}. {}",
                  has_pickle ? "pytorch_model.bin" : "none of them",
                  has_pickle ? "Pickled files are not read: save the model as safetensors"
                             : "Name the file itself if it has another name"));
}

}  // namespace

WeightSource WeightSource::open(const fs::path& path) {
  fs::path file = file_of(path);
  if (fs::exists(file) && !fs::is_regular_file(file))
    throw InvalidInput(file.string(), "weights: expected a file, got something else (a pipe, a device)");
  if (file.extension() == ".json") {
    Files files = ShardedWeights::open(file);
    return {std::move(file), std::move(files)};
  }
  Files files = SafetensorsFile::open(file);
  return {std::move(file), std::move(files)};
}

std::vector<TensorEntry> WeightSource::tensors() const {
  if (const auto* one = std::get_if<SafetensorsFile>(&files_)) return one->tensors();
  std::vector<TensorEntry> all;
  for (const SafetensorsFile& shard : std::get<ShardedWeights>(files_).shards())
    all.insert(all.end(), shard.tensors().begin(), shard.tensors().end());
  return all;
}

const TensorEntry* WeightSource::find(std::string_view name) const {
  return std::visit([&](const auto& files) { return files.find(name); }, files_);
}

void WeightSource::read(std::string_view name, std::span<std::byte> out) const {
  std::visit([&](const auto& files) { files.read(name, out); }, files_);
}

void WeightSource::read_part(std::string_view name, int64_t offset, std::span<std::byte> out) const {
  const TensorEntry* entry = find(name);
  CHILIAD_CHECK(entry != nullptr);
  const auto* one = std::get_if<SafetensorsFile>(&files_);
  const SafetensorsFile& file = one != nullptr ? *one : *std::get<ShardedWeights>(files_).shard_of(name);
  file.read_part(*entry, offset, out);
}

namespace {

bool is_weight_type(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16 || dtype == DType::kF64;
}

}  // namespace

KeyMatch match_weights(const spec::LayerTable& table, const WeightSource& source, const KeyTable& keys) {
  std::vector<NamedShape> found;
  for (const auto& tensor : source.tensors()) found.push_back({tensor.name, tensor.shape});
  const auto wanted = parameters_of(table);
  KeyMatch match = match_keys(keys, wanted, found);
  if (!match.complete()) {
    throw InvalidInput(
        source.path().string(),
        fmt::format("weights: expected the {} tensors of the model, got {}. Take files and options "
                    "that belong together",
                    wanted.size(), match.report()));
  }
  for (const auto& [ours, key] : match.key_of) {
    const DType dtype = source.find(key)->dtype;
    if (is_weight_type(dtype)) continue;
    throw InvalidInput(
        source.path().string(),
        fmt::format("tensor '{}': expected fp32, bf16, fp16 or fp64, got {}. Quantized weights are "
                    "not read: take the original ones",
                    key, dtype_name(dtype)));
  }
  return match;
}

}  // namespace chiliad::weights
