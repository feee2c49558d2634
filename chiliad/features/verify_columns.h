#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "chiliad/index/index.h"

namespace chiliad::features {

/// A file of a column that is not what was written.
struct ColumnProblem {
  std::string file;  ///< below the index's folder
  std::string what;  ///< what was expected and found, and what to do
};

struct ColumnsReport {
  std::vector<ColumnProblem> problems;  ///< by column, then in the column's order
  std::vector<std::string> unfinished;  ///< names of columns that `chiliad encode` has not finished, unread
  int64_t num_columns = 0;              ///< whole ones
  int64_t num_features = 0;             ///< read
  int64_t bytes_read = 0;
};

/// Reads all features of all whole columns beside the index again, and compares checksums. Problems are
/// returned, not thrown. `threads` > 0. `progress` is told how many bytes of how many were read, one call at
/// a time.
[[nodiscard]] ColumnsReport verify_columns(const index::Index& index, int threads,
                                           const std::function<void(int64_t done, int64_t total)>& progress);

}  // namespace chiliad::features
