#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "chiliad/dataset/build_index.h"
#include "chiliad/dataset/verify.h"
#include "chiliad/index/index.h"

namespace chiliad::report {

struct VerifyPageOptions {
  std::string title;
  std::string made_at;     ///< time, for people
  size_t max_items = 200;  ///< boxes of each of the two lists; of the rest only the numbers
  int32_t thumb_side = 160;
};

/// HTML of what `verify` found, and of what was refused when the index was made (`refused`: its bad.jsonl):
/// reasons, keys, and pictures as far as they decode.
[[nodiscard]] std::string verify_page(const index::Index& index, const dataset::VerifyReport& report,
                                      const std::vector<dataset::BadSample>& refused,
                                      const VerifyPageOptions& options);

/// A reason without what is particular to one sample: numbers become N, names behind a colon stay.
[[nodiscard]] std::string reason_pattern(const std::string& reason);

}  // namespace chiliad::report
