#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "chiliad/base/dtype.h"
#include "chiliad/base/shape.h"

namespace chiliad::checkpoint {

/// A committed checkpoint, opened: manifest and COMMIT agree, every file has its length. Payload is verified
/// by `verify` or while reading.
class Checkpoint {
 public:
  struct Tensor {
    std::string section;
    std::string name;
    DType dtype = DType::kF32;
    Shape shape;
    uint64_t digest = 0;  ///< positional, of the whole tensor
  };

  /// `path` is a step-N.gG folder. Throws CorruptData naming the file, InvalidInput if it is no checkpoint.
  [[nodiscard]] static Checkpoint open(const std::filesystem::path& path);

  [[nodiscard]] int64_t step() const;
  [[nodiscard]] int64_t generation() const;
  [[nodiscard]] int num_ranks() const;
  [[nodiscard]] const std::filesystem::path& path() const;
  [[nodiscard]] const std::vector<Tensor>& tensors() const;
  [[nodiscard]] const Tensor* find(const std::string& section, const std::string& name) const;
  [[nodiscard]] const std::string& state() const;   ///< JSON as given to the snapshot
  [[nodiscard]] const std::string& config() const;  ///< resolved run file

  /// Fills `out` (row-major, box.count() elements) from whatever boxes are stored: any layout loads into any
  /// other. Verifies the block checksums of the file ranges that it reads.
  void read(const Tensor& tensor, const Box& box, std::span<std::byte> out) const;
  /// Reads everything: block checksums, box digests, safetensors headers; a file that the manifest does not
  /// list is an error too. Throws CorruptData naming file and tensor.
  void verify() const;
  [[nodiscard]] int64_t num_bytes() const;

  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;
  ~Checkpoint();

 private:
  struct Data;
  friend std::optional<Checkpoint> newest_good(
      const std::filesystem::path&, const std::function<void(const std::string&, const std::string&)>&);
  explicit Checkpoint(std::unique_ptr<Data> data);
  std::unique_ptr<Data> data_;
};

/// One folder of checkpoints/ as `chiliad ckpt ls` shows it.
struct Listing {
  std::filesystem::path path;
  int64_t step = 0;
  int64_t generation = 0;
  bool committed = false;
  std::string problem;  ///< why it cannot be used; empty: sound as far as opened
};
/// Newest first.
[[nodiscard]] std::vector<Listing> list(const std::filesystem::path& folder);

/// The newest checkpoint that opens and verifies. Damaged ones are named through `report` (path, why) and
/// skipped. Nothing if there is none.
[[nodiscard]] std::optional<Checkpoint> newest_good(
    const std::filesystem::path& folder,
    const std::function<void(const std::string&, const std::string&)>& report);

/// The checkpoint that a user means: a step-N.gG folder itself, or the newest good one of a run directory or
/// its checkpoints/ (damaged ones are logged). Throws InvalidInput if there is none, CorruptData if all are
/// damaged.
[[nodiscard]] Checkpoint open_newest(const std::filesystem::path& given);

}  // namespace chiliad::checkpoint
