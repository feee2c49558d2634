#pragma once

#include <cstdint>

// What the library libchiliad_parquet.so offers: Arrow's reader of parquet behind a few C functions. It is
// opened when a user imports parquet, with local symbols, so that nothing of Arrow is in any program. Built
// from apps/parquet. No exceptions leave it; all texts are UTF-8 and end with a zero.

extern "C" {

/// Counts up when anything below changes.
inline constexpr int kChiliadParquetVersion = 1;

/// Bytes that lie in the reader until its next call. size -1: null.
struct ChiliadParquetBytes {
  const char* data;
  int64_t size;
};

/// One row.
struct ChiliadParquetRow {
  ChiliadParquetBytes image;            ///< bytes of a picture file
  ChiliadParquetBytes path;             ///< of a struct {bytes, path}
  const ChiliadParquetBytes* captions;  ///< those that are not null
  int64_t num_captions;
};

struct ChiliadParquetReader;

/// Functions of the library, got by dlsym("chiliad_parquet_functions").
struct ChiliadParquetFunctions {
  int version;
  /// `image_keys`, `caption_keys`: names of columns, or of fields in them (image.bytes), separated by zeros
  /// and ended by an empty one; the first that is there counts. Null where it cannot be opened:
  /// `error` of `error_bytes` then says why. At most `batch_rows` rows are in memory, beside the pages that
  /// hold them.
  ChiliadParquetReader* (*open)(const char* path, const char* image_keys, const char* caption_keys,
                                int64_t batch_rows, char* error, int64_t error_bytes);
  void (*close)(ChiliadParquetReader* reader);
  int64_t (*num_rows)(const ChiliadParquetReader* reader);
  /// Of the row group that holds `row`: the row behind it.
  int64_t (*group_end)(const ChiliadParquetReader* reader, int64_t row);
  /// The next call of `next` gives `row`. 0, or -1 with error().
  int (*seek)(ChiliadParquetReader* reader, int64_t row);
  /// 1: `out` is the next row; 0: there is none; -1: error(), and seek must follow.
  int (*next)(ChiliadParquetReader* reader, ChiliadParquetRow* out);
  const char* (*error)(const ChiliadParquetReader* reader);
};

using ChiliadParquetEntry = const ChiliadParquetFunctions* (*)();

}  // extern "C"
