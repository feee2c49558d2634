#pragma once

#include <optional>
#include <string>

#include "chiliad/report/run_data.h"
#include "chiliad/stepplan/plan.h"

namespace chiliad::report {

/// What is known of the data set behind a run.
struct PlanFacts {
  const stepplan::Plan* plan = nullptr;  ///< null: it could not be made
  std::string problem;                   ///< why
};

struct PageOptions {
  std::string made_at;          ///< time, for people
  size_t max_samples = 12;      ///< newest grids shown
  size_t max_amendments = 200;  ///< of the journal
};

/// One HTML page about a run, which needs nothing else.
[[nodiscard]] std::string run_page(const RunData& run, const PlanFacts& facts, const PageOptions& options);

}  // namespace chiliad::report
