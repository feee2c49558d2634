#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "chiliad/base/dtype.h"
#include "chiliad/base/hash.h"
#include "chiliad/base/shape.h"

namespace chiliad::features {

/// Which feature of a shard: a sample's latents or a caption's tokens, by their number in the shard, and the
/// second one of it: latents of the flipped picture, the pooled vector of the text.
struct FeatureId {
  uint32_t number = 0;
  bool second = false;
  auto operator<=>(const FeatureId&) const = default;
};

/// A feature and its values.
struct Feature {
  FeatureId id;
  DType dtype = DType::kF32;
  Shape shape;
  std::vector<std::byte> bytes;
};

/// What is in one file of a column.
struct Part {
  std::vector<Feature> features;
  std::map<uint32_t, std::string> refused;  ///< by number, why there is none
};

/// Where a feature lies in its file.
struct FeatureEntry {
  FeatureId id;
  DType dtype = DType::kF32;
  Shape shape;
  int64_t begin = 0;
  int64_t num_bytes = 0;
  uint64_t checksum = 0;  ///< xxh3-64 of the bytes
};

struct PartContent {
  std::vector<FeatureEntry> entries;  ///< by id
  std::map<uint32_t, std::string> refused;
};

/// Writes a safetensors file, all at once: it is there whole and durably, or not at all. Tensors are named
/// "17" and "17.2"; `__metadata__` has "column" (the key), "xxh3.17" for each and "refused.17" for what is
/// not there. Equal arguments give equal bytes.
void write_part(const std::filesystem::path& path, const Digest& column, const Part& part);

/// Its table. Throws CorruptData where it is not what write_part wrote for that column.
[[nodiscard]] PartContent read_part(const std::filesystem::path& path, const Digest& column);

}  // namespace chiliad::features
