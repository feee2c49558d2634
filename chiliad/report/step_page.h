#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "chiliad/base/host_array.h"
#include "chiliad/index/index.h"
#include "chiliad/loader/batch.h"

namespace chiliad::report {

/// Picture and caption of an item.
struct Original {
  HostArray pixels;  ///< uint8 [H, W, 3] of the bucket
  std::string caption;
};

struct StepPageOptions {
  std::string title;    ///< of the run
  std::string made_at;  ///< time, for people
  /// The text that ids stand for, with special tokens.
  std::function<std::string(std::span<const int32_t>)> decode;
  /// Of items whose batch has features in place of pixels and tokens.
  std::function<Original(const stepplan::Item&, stepplan::Bucket)> original;
  double caption_dropout = 0.0;  ///< objective.caption_dropout
  int64_t max_items = 512;       ///< shown; of the rest only the number
};

/// HTML of what the model sees in one step: each rank's micro-batches as the loader made them. ranks: the
/// same step of every data-parallel rank, in their order.
[[nodiscard]] std::string step_page(const index::Index& index, const std::vector<loader::RankStep>& ranks,
                                    const StepPageOptions& options);

}  // namespace chiliad::report
