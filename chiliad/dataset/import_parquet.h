#pragma once

#include <filesystem>
#include <string>

#include "chiliad/dataset/build_tars.h"

namespace chiliad::dataset {

/// Which columns of parquet files hold what; empty: the usual names.
struct ParquetColumns {
  std::string image;    ///< bytes of pictures, or a struct {bytes, path}; A.B is field B of column A
  std::string caption;  ///< a text, or a list of texts
};

/// Whether `source` is what import_parquet reads: a .parquet file, a pattern with * or ? that ends so, or a
/// folder with such files that holds neither tars nor pictures.
[[nodiscard]] bool is_parquet(const std::string& source);

/// `build_tars` of the rows of parquet files, of which nothing is indexed before; samples are numbered
/// through the files in the order of their names. A row without bytes or caption, and rows that cannot be
/// read, are dropped and told of. Memory: that of a few samples a thread, and of the pages of the file that
/// hold them, whatever the size of row groups. Throws InvalidInput where the reader's library is not there,
/// for a file that is no parquet, and naming the columns where those that are wanted are not there.
TarReport import_parquet(const std::string& source, const std::filesystem::path& out,
                         const ParquetColumns& columns, const TarOptions& options, const Progress& progress);

}  // namespace chiliad::dataset
