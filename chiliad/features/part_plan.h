#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "chiliad/features/column.h"
#include "chiliad/index/index.h"
#include "chiliad/stepplan/plan.h"

namespace chiliad::features {

/// Samples whose features are in one file.
struct PartPlan {
  uint32_t shard = 0;
  int64_t number = 0;  ///< in the shard
  std::vector<stepplan::Plan::Planned> samples;
};

/// All parts of a column, in order: the samples that a run shows, some at a time. A function of the plan
/// alone.
[[nodiscard]] std::vector<PartPlan> plan_parts(const index::Index& index, const stepplan::Plan& plan);

[[nodiscard]] PartCounts count_parts(const index::Index& index, const std::vector<PartPlan>& parts);

/// What is said about a column whose parts are all there; every byte of them is read and compared with its
/// checksum. Throws CorruptData for a part that is missing or damaged.
[[nodiscard]] ColumnSummary summarise(const index::Index& index, const spec::RunFile& run,
                                      const Identity& identity, const std::vector<PartPlan>& parts);

}  // namespace chiliad::features
