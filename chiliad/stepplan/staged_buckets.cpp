#include "chiliad/stepplan/staged_buckets.h"

#include <algorithm>

#include "chiliad/spec/shape_stages.h"

namespace chiliad::stepplan {

StagedBuckets::StagedBuckets(const spec::DataOptions& options) {
  for (const spec::DataOptions& stage : spec::stage_options(options)) {
    const auto& own = tables_.emplace_back(stage).buckets();
    buckets_.insert(buckets_.end(), own.begin(), own.end());
    first_bucket_.push_back(static_cast<int32_t>(buckets_.size()));
  }
  for (const spec::ShapeStage& stage : options.stages) from_.push_back(stage.from);
}

size_t StagedBuckets::stage_of(int64_t step) const {
  return static_cast<size_t>(std::upper_bound(from_.begin(), from_.end(), step) - from_.begin());
}

BucketTable::Choice StagedBuckets::assign(size_t stage, int64_t width, int64_t height) const {
  BucketTable::Choice choice = tables_[stage].assign(width, height);
  if (choice.bucket >= 0) choice.bucket += first_bucket_[stage];
  return choice;
}

}  // namespace chiliad::stepplan
