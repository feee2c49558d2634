#pragma once

#include <filesystem>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "chiliad/weights/key_table.h"
#include "chiliad/weights/safetensors.h"
#include "chiliad/weights/sharded_index.h"

namespace chiliad::weights {

/// The weights of a model on disk, in one file or several. Move-only; reads are thread-safe.
class WeightSource {
 public:
  /// A .safetensors file, an .index.json, or a folder that has one of the usual names of them (`model`,
  /// `diffusion_pytorch_model`; the index wins). Throws InvalidInput where there is none, CorruptData as
  /// SafetensorsFile and ShardedWeights do.
  [[nodiscard]] static WeightSource open(const std::filesystem::path& path);

  /// All tensors; of several files, in the order of the files.
  [[nodiscard]] std::vector<TensorEntry> tensors() const;
  /// Null if there is no such tensor.
  [[nodiscard]] const TensorEntry* find(std::string_view name) const;
  /// Fills `out`, exactly as long as the tensor.
  void read(std::string_view name, std::span<std::byte> out) const;
  /// The same of `out.size()` bytes from byte `offset` of the tensor.
  void read_part(std::string_view name, int64_t offset, std::span<std::byte> out) const;
  /// The file that was opened: the index where there are several.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  using Files = std::variant<SafetensorsFile, ShardedWeights>;
  WeightSource(std::filesystem::path path, Files files) : path_(std::move(path)), files_(std::move(files)) {}

  std::filesystem::path path_;
  Files files_;
};

/// Which tensor of the source is which parameter. Throws InvalidInput with the whole report unless every one
/// of the source is explained and every parameter is there once, in its shape.
[[nodiscard]] KeyMatch match_weights(const spec::LayerTable& table, const WeightSource& source,
                                     const KeyTable& keys);

}  // namespace chiliad::weights
