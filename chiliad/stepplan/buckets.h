#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "chiliad/spec/options/data.h"
#include "chiliad/stepplan/item.h"

namespace chiliad::stepplan {

/// The shapes of a run's pictures in one stage, and which of them a picture takes (docs/guides/buckets.md).
/// Immutable.
class BucketTable {
 public:
  /// Of the settings without their stages. Throws InvalidInput where they give no shape.
  explicit BucketTable(const spec::DataOptions& options);

  struct Choice {
    int32_t bucket = -1;     ///< in buckets(); -1: the recipe refuses the picture
    bool too_small = false;  ///< why: it would have to be made larger
    bool too_far = false;    ///< why: its ratio is too far from all of them
  };
  /// Of a picture of width x height pixels, both above 0.
  [[nodiscard]] Choice assign(int64_t width, int64_t height) const;
  [[nodiscard]] const std::vector<Bucket>& buckets() const { return buckets_; }

 private:
  enum class Rule { kRatio, kLinear, kRoundedLinear, kMostPixels, kNoUpscale };
  /// Shapes of about one area; a picture takes one of the first group that it is large enough for.
  struct Group {
    size_t first = 0;
    size_t last = 0;
    double least_pixels = 0.0;
  };

  void take_rule(const spec::DataOptions& options);
  [[nodiscard]] Choice assign_in(const Group& group, int64_t width, int64_t height) const;
  [[nodiscard]] Choice cut_down(int64_t width, int64_t height) const;

  std::vector<Bucket> buckets_;
  std::vector<double> ratios_;  // of each, as the rule compares them
  std::vector<Group> groups_;
  Rule rule_ = Rule::kRatio;
  double max_error_ = 0.0;  // of the linear rule; 0: any
  double max_crop_ = 0.0;
  bool may_enlarge_ = true;
  int64_t step_ = 1;
  double area_ = 0.0;
};

/// The bucket that keeps most pixels of a picture of those that cut off at most `max_crop` of it: the least
/// of the bucket's pixels and what of the picture's remain. The one that cuts off least where all cut off
/// more, or several keep as many; the smaller index on ties. -1: all would enlarge the picture, which must
/// not be.
[[nodiscard]] int32_t most_pixels_bucket(std::span<const Bucket> buckets, int64_t width, int64_t height,
                                         double max_crop, bool may_enlarge = true);

/// Part of a picture that its bucket cuts off.
[[nodiscard]] double cropped_part(int64_t width, int64_t height, Bucket bucket);

}  // namespace chiliad::stepplan
