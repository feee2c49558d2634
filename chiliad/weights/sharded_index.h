#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chiliad/weights/safetensors.h"

namespace chiliad::weights {

/// Weights cut into several files, joined by a `model.safetensors.index.json`.
class ShardedWeights {
 public:
  /// Reads the index and the header of every shard beside it. Throws CorruptData naming index, shard and
  /// tensor if a shard is missing or not a plain file name, or if index and headers do not list the same
  /// tensors in the same shards.
  [[nodiscard]] static ShardedWeights open(const std::filesystem::path& index_path);

  [[nodiscard]] const std::vector<SafetensorsFile>& shards() const { return shards_; }
  /// Tensor names, sorted.
  [[nodiscard]] std::vector<std::string> names() const;
  /// Null if there is no such tensor.
  [[nodiscard]] const SafetensorsFile* shard_of(std::string_view name) const;
  [[nodiscard]] const TensorEntry* find(std::string_view name) const;
  /// Fills `out`, exactly as long as the tensor.
  void read(std::string_view name, std::span<std::byte> out) const;
  /// Things to tell the user that do not keep the weights from being used: a wrong `total_size`.
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  explicit ShardedWeights(std::filesystem::path path) : path_(std::move(path)) {}
  void check_shards(std::optional<uint64_t> total_size);

  std::filesystem::path path_;
  std::vector<SafetensorsFile> shards_;
  std::map<std::string, size_t, std::less<>> shard_by_tensor_;
  std::vector<std::string> warnings_;
};

}  // namespace chiliad::weights
