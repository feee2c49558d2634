#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "chiliad/base/dtype.h"
#include "chiliad/base/shape.h"
#include "chiliad/io/file.h"

namespace chiliad::weights {

/// Largest header that is read or written, as in the official library.
inline constexpr int64_t kMaxHeaderBytes = 100'000'000;

/// Text to text, stored under `__metadata__`.
using Metadata = std::map<std::string, std::string>;

/// A tensor in a file. `begin` and `end` count from the start of the *file*, not of its data section.
struct TensorEntry {
  std::string name;
  DType dtype = DType::kU8;
  Shape shape;
  int64_t begin = 0;
  int64_t end = 0;

  [[nodiscard]] int64_t num_bytes() const { return end - begin; }
  bool operator==(const TensorEntry&) const = default;
};

/// A safetensors file that was opened and whose header holds up: UTF-8, no name twice, sizes that fit shape
/// and dtype, every byte of the file in exactly one tensor. Move-only; reads are thread-safe.
class SafetensorsFile {
 public:
  /// Throws CorruptData naming file, tensor and rule where the format is violated; InvalidInput if there is
  /// no file. Allocates nothing that the file's own size does not justify.
  [[nodiscard]] static SafetensorsFile open(const std::filesystem::path& path);

  /// In the order of their bytes.
  [[nodiscard]] const std::vector<TensorEntry>& tensors() const { return tensors_; }
  /// Null if there is no such tensor.
  [[nodiscard]] const TensorEntry* find(std::string_view name) const;
  [[nodiscard]] const Metadata& metadata() const { return metadata_; }
  [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }
  /// Where the header ends.
  [[nodiscard]] int64_t data_start() const { return data_start_; }

  /// Fills `out`, exactly as long as the tensor. Throws CorruptData if the file has no such tensor or became
  /// shorter.
  void read(std::string_view name, std::span<std::byte> out) const;
  /// Part of a tensor: `out.size()` bytes from byte `offset` of it.
  void read_part(const TensorEntry& tensor, int64_t offset, std::span<std::byte> out) const;

 private:
  explicit SafetensorsFile(io::File file) : file_(std::move(file)) {}

  io::File file_;
  std::vector<TensorEntry> tensors_;
  std::unordered_map<std::string, size_t> positions_;
  Metadata metadata_;
  int64_t data_start_ = 0;
};

/// What is to be stored of a tensor.
struct TensorSpec {
  std::string name;
  DType dtype = DType::kU8;
  Shape shape;
};

/// A file before its data is written: `header` (length, JSON, padding), then the tensors' bytes in order,
/// without gaps.
struct SafetensorsLayout {
  std::string header;
  std::vector<TensorEntry> tensors;  ///< in the given order
  int64_t file_bytes = 0;
};

/// The layout of a file that holds `tensors` in this order. The data begins at a multiple of `alignment` (a
/// power of two, 8 to 4096): 4096 for direct I/O. Equal arguments give equal bytes. Tensors whose elements
/// are wider should come first if they are to be used in place. Throws InvalidInput if a name is not UTF-8,
/// stands twice, is `__metadata__`, or the header would be above kMaxHeaderBytes.
[[nodiscard]] SafetensorsLayout plan_safetensors(std::span<const TensorSpec> tensors,
                                                 const Metadata& metadata, int64_t alignment = 8);

/// A tensor and its bytes, which are borrowed.
struct TensorBytes {
  TensorSpec spec;
  std::span<const std::byte> bytes;
};

/// Writes a whole file to `file`, which is empty. Neither syncs nor closes it. Returns the layout.
SafetensorsLayout write_safetensors(io::File& file, std::span<const TensorBytes> tensors,
                                    const Metadata& metadata, int64_t alignment = 8);

}  // namespace chiliad::weights
