#pragma once

#include <cstdint>
#include <vector>

#include "chiliad/spec/options/data.h"
#include "chiliad/stepplan/buckets.h"
#include "chiliad/stepplan/item.h"

namespace chiliad::stepplan {

/// The tables of all stages of a run (data.stages), whose shapes are numbered one after another: a shape's
/// number tells the stage. Immutable.
class StagedBuckets {
 public:
  /// Throws InvalidInput where the settings of a stage give no shape.
  explicit StagedBuckets(const spec::DataOptions& options);

  [[nodiscard]] size_t num_stages() const { return tables_.size(); }
  /// The stage that holds a step of the run.
  [[nodiscard]] size_t stage_of(int64_t step) const;
  /// The step that a stage begins with.
  [[nodiscard]] int64_t from(size_t stage) const { return stage == 0 ? 0 : from_[stage - 1]; }
  /// As BucketTable::assign; the bucket is one of buckets().
  [[nodiscard]] BucketTable::Choice assign(size_t stage, int64_t width, int64_t height) const;
  /// Of all stages.
  [[nodiscard]] const std::vector<Bucket>& buckets() const { return buckets_; }
  /// Where the buckets of a stage begin; of num_stages() their end.
  [[nodiscard]] int32_t first_bucket(size_t stage) const { return first_bucket_[stage]; }

 private:
  std::vector<BucketTable> tables_;
  std::vector<int64_t> from_;  // step, of each but the first
  std::vector<int32_t> first_bucket_{0};
  std::vector<Bucket> buckets_;
};

}  // namespace chiliad::stepplan
