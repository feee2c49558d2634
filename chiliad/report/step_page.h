#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "chiliad/index/index.h"
#include "chiliad/loader/batch.h"

namespace chiliad::report {

struct StepPageOptions {
  std::string title;    ///< of the run
  std::string made_at;  ///< time, for people
  /// The text that ids stand for, with special tokens.
  std::function<std::string(std::span<const int32_t>)> decode;
  double caption_dropout = 0.0;  ///< objective.caption_dropout
  int64_t max_items = 512;       ///< shown; of the rest only the number
};

/// HTML of what the model sees in one step: each rank's micro-batches as the loader made them. ranks: the
/// same step of every data-parallel rank, in their order.
[[nodiscard]] std::string step_page(const index::Index& index, const std::vector<loader::RankStep>& ranks,
                                    const StepPageOptions& options);

}  // namespace chiliad::report
