#pragma once

#include <cstdint>

#include "chiliad/loader/batch.h"
#include "chiliad/loader/loader_options.h"
#include "chiliad/stepplan/bad_rates.h"
#include "chiliad/stepplan/plan.h"

namespace chiliad::loader {

/// A rank's part of a step, before there is memory for it.
struct StepDraft {
  stepplan::Step selected;
  stepplan::PackedStep packed;
  int64_t bytes = 0;          ///< of the memory budget
  int64_t planned_bytes = 0;  ///< of payload
  size_t num_items = 0;
};

/// Makes a rank's steps of the plan, without their data. Thread-safe.
class StepMaker {
 public:
  /// Everything given outlives it.
  StepMaker(const index::Index& index, const stepplan::Plan& plan, const LoaderOptions& options,
            const ItemLoader& items)
      : plan_(plan), options_(options), items_(items), groups_(index) {}

  [[nodiscard]] StepDraft draft(int64_t step, const stepplan::Journal& journal) const;
  /// With memory of `slab`, of undefined values.
  [[nodiscard]] RankStep make(StepDraft&& draft, Slab& slab) const;
  /// Makes a loaded step what it is under a later journal: items that lost their weight are cleared.
  void apply(const stepplan::Journal& journal, RankStep& step) const;

 private:
  const stepplan::Plan& plan_;
  const LoaderOptions& options_;
  const ItemLoader& items_;
  const stepplan::SampleGroups groups_;
};

}  // namespace chiliad::loader
