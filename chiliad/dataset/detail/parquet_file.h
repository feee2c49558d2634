#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "chiliad/dataset/detail/record_shards.h"
#include "chiliad/dataset/parquet_api.h"

namespace chiliad::dataset::detail {

/// A row, copied out of the reader.
struct ParquetRow {
  std::optional<std::vector<std::byte>> image;  ///< nothing: null
  std::string path;                             ///< beside the bytes, or empty
  std::vector<std::string> captions;
};

/// One parquet file of pictures and captions, row by row. Memory: a few rows, and the pages of the file that
/// hold them. Not thread-safe.
class ParquetFile {
 public:
  /// `names`: of columns; empty: image, img, jpg, png, webp; caption, text, prompt, txt. Throws InvalidInput
  /// where libchiliad_parquet.so is not there, the file is no parquet (footer), or has no such columns.
  ParquetFile(std::filesystem::path path, const FieldNames& names);
  ~ParquetFile();
  ParquetFile(const ParquetFile&) = delete;
  ParquetFile& operator=(const ParquetFile&) = delete;

  [[nodiscard]] int64_t num_rows() const;
  /// The row behind the row group of `row`.
  [[nodiscard]] int64_t group_end(int64_t row) const;
  /// Reads `row`; rows one after another are quickest. Returns why it cannot be read: the rest of its row
  /// group cannot be, either.
  [[nodiscard]] std::string read(int64_t row, ParquetRow& out);

 private:
  std::filesystem::path path_;
  const ChiliadParquetFunctions* functions_;
  ChiliadParquetReader* reader_ = nullptr;  // owned
  int64_t next_ = 0;                        // row that the reader gives next; -1: it must be sought
};

}  // namespace chiliad::dataset::detail
