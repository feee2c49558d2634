#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chiliad/dataset/build_index.h"
#include "chiliad/index/index.h"

namespace chiliad::dataset {

/// A file or a part that is not what the index says.
struct Problem {
  std::string file;
  std::string key;      ///< of the sample; empty where the whole file is meant
  std::string what;     ///< what was expected and found
  int64_t sample = -1;  ///< of the index; -1 where the whole file is meant
  uint32_t part = 0;    ///< in the sample's shard
};

struct VerifyReport {
  std::vector<Problem> problems;  ///< in index order
  int64_t num_parts = 0;          ///< checked
  int64_t bytes_read = 0;
};

/// Reads every part again and compares checksums, and the files' sizes and times. A changed time alone is a
/// problem too (the index would be made again), beside the checksums that say whether the bytes changed.
/// Problems are returned, not thrown; the index itself was checked when it was opened. `threads` > 0.
[[nodiscard]] VerifyReport verify(const index::Index& index, int threads, const Progress& progress);

}  // namespace chiliad::dataset
