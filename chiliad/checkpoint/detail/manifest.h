#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chiliad/base/dtype.h"
#include "chiliad/base/hash.h"
#include "chiliad/base/shape.h"
#include "chiliad/base/units.h"

namespace chiliad::checkpoint::detail {

inline constexpr int64_t kBlockBytes = 8 * kMiB;
inline constexpr int64_t kMaxManifestBytes = 512 * kMiB;
inline constexpr int64_t kMaxStateBytes = kGiB;
inline constexpr int kMaxRanks = 1 << 20;

/// A file of a checkpoint: path inside of it, length, xxh3-64 of each block of kBlockBytes.
struct StoredFile {
  std::string path;
  int64_t bytes = 0;
  std::vector<uint64_t> blocks;
};

/// A box and where its bytes are.
struct StoredBox {
  size_t file = 0;  ///< index in Manifest::files
  Box box;
  int64_t at = 0;  ///< byte offset in the file
  uint64_t digest = 0;
};

struct StoredTensor {
  std::string section;
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  std::vector<StoredBox> boxes;

  [[nodiscard]] uint64_t digest() const;  ///< sum of its boxes' digests
};

/// docs/formats/checkpoint.md, manifest.json.
struct Manifest {
  int64_t step = 0;
  int64_t generation = 0;
  int num_ranks = 0;
  std::string config;
  std::vector<StoredFile> files;
  std::vector<StoredTensor> tensors;
};

[[nodiscard]] std::string manifest_text(const Manifest& manifest);
/// Checks all that can be checked without the files: types, ranges, paths, coverage, no shared bytes, tensor
/// digests. Throws CorruptData with `place`.
[[nodiscard]] Manifest parse_manifest(const std::string& place, std::string_view text);

/// Throws CorruptData unless the tensor's boxes cover it exactly once.
void check_coverage(const std::string& place, const StoredTensor& tensor);

/// What COMMIT says.
struct CommitRecord {
  Digest manifest;
  int64_t step = 0;
  int64_t generation = 0;
  int64_t num_files = 0;
  bool operator==(const CommitRecord&) const = default;
};
[[nodiscard]] std::string commit_text(const CommitRecord& record);
/// Throws CorruptData unless `text` is exactly what commit_text makes of its values.
[[nodiscard]] CommitRecord parse_commit(const std::string& place, std::string_view text);

/// Step and generation of a folder's name.
struct FolderName {
  int64_t step = 0;
  int64_t generation = 0;
  auto operator<=>(const FolderName&) const = default;
  [[nodiscard]] std::string to_string() const;  ///< "step-12.g0"
};
/// Nothing unless `name` is exactly what to_string gives.
[[nodiscard]] std::optional<FolderName> parse_folder_name(std::string_view name);

/// All folders of `folder` that are named like a checkpoint, newest first. A missing folder has none.
[[nodiscard]] std::vector<FolderName> checkpoint_folders(const std::filesystem::path& folder);

}  // namespace chiliad::checkpoint::detail
