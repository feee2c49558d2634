#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "chiliad/dataset/build_tars.h"
#include "chiliad/dataset/detail/build_source.h"
#include "chiliad/dataset/detail/parquet_file.h"

namespace chiliad::dataset::detail {

/// Rows of parquet files, one after another, as samples. A row that cannot be read drops those up to the end
/// of its row group.
class ParquetSource final : public BuildSource {
 public:
  /// Opens every file for its footer. `options` outlives it. Throws as ParquetFile.
  ParquetSource(std::vector<std::filesystem::path> files, const FieldNames& names, const TarOptions& options);

  [[nodiscard]] Digest digest() const override { return digest_; }
  [[nodiscard]] int64_t num_samples() const override { return first_row_.back(); }
  [[nodiscard]] int64_t total_bytes() const override { return total_bytes_; }
  [[nodiscard]] Window open_window(int64_t first, int64_t max_samples, uint64_t max_bytes) override;
  [[nodiscard]] MadeSample make(int64_t sample) const override;
  [[nodiscard]] std::string key(int64_t sample) const override;

 private:
  struct WaitingRow {
    ParquetRow row;
    std::string problem;  ///< why it cannot be read
  };
  [[nodiscard]] size_t file_of(int64_t sample) const;
  [[nodiscard]] WaitingRow read(int64_t sample);
  void add_row(const std::vector<std::byte>& image, const std::vector<std::string>& captions,
               MadeSample& made) const;

  std::vector<std::filesystem::path> files_;
  FieldNames names_;
  const TarOptions& options_;
  Where where_;
  std::vector<int64_t> first_row_{0};  // of each file, and the end
  Digest digest_;
  int64_t total_bytes_ = 0;
  size_t open_number_ = 0;
  std::unique_ptr<ParquetFile> open_;  // the file read last
  int64_t bad_end_ = 0;                // samples before it, from where reading failed, cannot be read
  std::string bad_reason_;
  int64_t window_first_ = 0;
  std::vector<WaitingRow> window_;
};

}  // namespace chiliad::dataset::detail
