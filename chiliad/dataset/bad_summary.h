#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chiliad/dataset/build_index.h"

namespace chiliad::dataset {

/// How many findings have a reason of one kind.
struct ReasonCount {
  std::string kind;  ///< the reason with N for every number and without the picture's name
  int64_t count = 0;
};

/// The kinds of reasons, the most frequent first, at most `most` of them.
[[nodiscard]] std::vector<ReasonCount> count_reasons(const std::vector<BadSample>& bad, size_t most);

}  // namespace chiliad::dataset
