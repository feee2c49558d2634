#include "chiliad/stepplan/buckets.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "chiliad/base/error.h"
#include "chiliad/spec/bucket_tables.h"
#include "chiliad/stepplan/plan.h"
#include "chiliad/stepplan/staged_buckets.h"

namespace chiliad::stepplan {
namespace {

// Of Open-Sora: a picture is large enough for shapes of S pixels from 0.8 S on.
constexpr double kLargeEnough = 0.8;
// Of NovelAI: the most that width / height may differ from the bucket's.
constexpr double kNovelaiMaxError = 4.0;

void check_sizes(const spec::DataOptions& options) {
  if (options.bucket_step > 0 && options.bucket_min > 0 && options.resolution > 0) return;
  throw InvalidInput(
      "data", fmt::format("resolution, bucket_step, bucket_min: expected positive sides, got {}, {}, {}",
                          options.resolution, options.bucket_step, options.bucket_min));
}

void sort_unique(std::vector<Bucket>& buckets) {
  std::sort(buckets.begin(), buckets.end());
  buckets.erase(std::unique(buckets.begin(), buckets.end()), buckets.end());
}

Bucket bucket_of(int64_t width, int64_t height) {
  return {static_cast<int32_t>(width), static_cast<int32_t>(height)};
}

/// Sides of nearly resolution^2 pixels, rounded to the nearest step.
std::vector<Bucket> own_buckets(const spec::DataOptions& options) {
  const int64_t step = options.bucket_step;
  const int64_t low = (options.bucket_min + step - 1) / step * step;
  const int64_t high = options.bucket_max / step * step;
  const double area = static_cast<double>(options.resolution) * static_cast<double>(options.resolution);
  std::vector<Bucket> buckets;
  for (int64_t width = low; width <= high; width += step) {
    const double exact = area / static_cast<double>(width * step);
    const int64_t height = static_cast<int64_t>(std::floor(exact + 0.5)) * step;
    if (height < low || height > high) continue;
    buckets.push_back(bucket_of(width, height));
    buckets.push_back(bucket_of(height, width));
  }
  return buckets;
}

/// For each width the largest height of at most resolution^2 pixels; both ways round; and the square.
std::vector<Bucket> kohya_buckets(const spec::DataOptions& options) {
  const int64_t step = options.bucket_step;
  const int64_t area = options.resolution * options.resolution;
  std::vector<Bucket> buckets;
  const int64_t square = options.resolution / step * step;
  if (square > 0) buckets.push_back(bucket_of(square, square));
  for (int64_t width = options.bucket_min; width <= options.bucket_max; width += step) {
    const int64_t height = std::min(options.bucket_max, area / width / step * step);
    if (height < options.bucket_min) continue;
    buckets.push_back(bucket_of(width, height));
    buckets.push_back(bucket_of(height, width));
  }
  return buckets;
}

/// All that a picture of at most resolution^2 pixels can be cut to.
std::vector<Bucket> cut_buckets(const spec::DataOptions& options) {
  const int64_t step = options.bucket_step;
  const int64_t area = options.resolution * options.resolution;
  std::vector<Bucket> buckets;
  for (int64_t width = step; width * step <= area; width += step) {
    for (int64_t height = step; width * height <= area; height += step)
      buckets.push_back(bucket_of(width, height));
  }
  return buckets;
}

std::vector<Bucket> generated(const spec::DataOptions& options) {
  check_sizes(options);
  std::vector<Bucket> buckets = options.bucket_no_upscale    ? cut_buckets(options)
                                : options.buckets == "kohya" ? kohya_buckets(options)
                                                             : own_buckets(options);
  sort_unique(buckets);
  if (!buckets.empty()) return buckets;
  throw InvalidInput(
      "data", fmt::format("buckets: no multiple of bucket_step {} within bucket_min {} and bucket_max {} "
                          "gives about {}^2 pixels. Lower bucket_step or widen the range",
                          options.bucket_step, options.bucket_min, options.bucket_max, options.resolution));
}

double linear_ratio(double width, double height) {
  return width / height;
}

}  // namespace

double cropped_part(int64_t width, int64_t height, Bucket bucket) {
  const double ratio =
      static_cast<double>(width) * bucket.height / (static_cast<double>(height) * bucket.width);
  return 1.0 - std::min(ratio, 1.0 / ratio);
}

int32_t most_pixels_bucket(std::span<const Bucket> buckets, int64_t width, int64_t height, double max_crop,
                           bool may_enlarge) {
  CHILIAD_CHECK(!buckets.empty() && width > 0 && height > 0);
  int32_t best = -1;
  double best_kept = 0.0;
  double best_crop = 0.0;
  const auto pixels = static_cast<double>(width) * static_cast<double>(height);
  for (size_t i = 0; i < buckets.size(); ++i) {
    if (!may_enlarge && (buckets[i].width > width || buckets[i].height > height)) continue;
    const double crop = cropped_part(width, height, buckets[i]);
    const double kept = crop > max_crop ? 0.0
                                        : std::min(static_cast<double>(buckets[i].width) * buckets[i].height,
                                                   pixels * (1.0 - crop));
    const bool better = best < 0 || kept > best_kept || (kept == best_kept && crop < best_crop);
    if (!better) continue;
    best = static_cast<int32_t>(i);
    best_kept = kept;
    best_crop = crop;
  }
  return best;
}

BucketTable::BucketTable(const spec::DataOptions& options) : max_crop_(options.max_crop) {
  const std::string& name = options.buckets;
  if (spec::is_generated(name)) {
    buckets_ = generated(options);
    step_ = options.bucket_step;
    area_ = static_cast<double>(options.resolution) * static_cast<double>(options.resolution);
    groups_.push_back({0, buckets_.size(), 0.0});
    take_rule(options);
    return;
  }
  const auto shapes = spec::table_shapes(name);
  const bool guarded = name.starts_with("opensora");
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (i == 0 || shapes[i].ratio < shapes[i - 1].ratio) {  // ratios rise inside a table
      if (name != "novelai" || i == 0) groups_.push_back({i, i, 0.0});
    }
    Group& group = groups_.back();
    group.last = i + 1;
    buckets_.push_back({shapes[i].width, shapes[i].height});
    // That of the square: Open-Sora's S.
    if (guarded && shapes[i].ratio == 1.0)
      group.least_pixels = kLargeEnough * static_cast<double>(shapes[i].width) * shapes[i].height;
  }
  take_rule(options);
}

void BucketTable::take_rule(const spec::DataOptions& options) {
  const std::string& choice = options.bucket_choice;
  const bool own = choice == "auto";
  may_enlarge_ = !options.bucket_no_upscale;
  if (!may_enlarge_) {
    rule_ = choice == "most_pixels" ? Rule::kMostPixels : Rule::kNoUpscale;
    return;
  }
  if (choice == "ratio" || (own && options.buckets == "auto")) rule_ = Rule::kRatio;
  if (choice == "linear" || (own && options.buckets != "auto")) rule_ = Rule::kLinear;
  if (choice == "most_pixels") rule_ = Rule::kMostPixels;
  if (own && options.buckets == "novelai") max_error_ = kNovelaiMaxError;
  if (own && !spec::is_generated(options.buckets) && options.buckets != "novelai") {
    rule_ = Rule::kRoundedLinear;
    for (const auto& shape : spec::table_shapes(options.buckets)) ratios_.push_back(shape.ratio);
    return;
  }
  for (const Bucket bucket : buckets_) {
    const double ratio = linear_ratio(bucket.width, bucket.height);
    ratios_.push_back(rule_ == Rule::kRatio ? std::log(ratio) : ratio);
  }
}

BucketTable::Choice BucketTable::assign(int64_t width, int64_t height) const {
  CHILIAD_CHECK(width > 0 && height > 0);
  if (rule_ == Rule::kNoUpscale) return cut_down(width, height);
  const double pixels = static_cast<double>(width) * static_cast<double>(height);
  for (const Group& group : groups_) {
    if (pixels >= group.least_pixels) return assign_in(group, width, height);
  }
  return {.bucket = -1, .too_small = true};
}

BucketTable::Choice BucketTable::assign_in(const Group& group, int64_t width, int64_t height) const {
  if (rule_ == Rule::kMostPixels) {
    const auto own = std::span(buckets_).subspan(group.first, group.last - group.first);
    const int32_t at = most_pixels_bucket(own, width, height, max_crop_, may_enlarge_);
    if (at < 0) return {.bucket = -1, .too_small = true};
    return {.bucket = static_cast<int32_t>(group.first) + at};
  }
  // kohya prefers a bucket of the picture's own size.
  double ratio = linear_ratio(static_cast<double>(width), static_cast<double>(height));
  if (rule_ == Rule::kRatio) ratio = std::log(ratio);
  if (rule_ == Rule::kRoundedLinear) ratio = static_cast<double>(height) / static_cast<double>(width);
  const double slack = rule_ == Rule::kRatio ? 1e-12 : 0.0;  // rounding must not decide a tie
  size_t best = group.first;
  double best_error = INFINITY;
  for (size_t i = group.first; i < group.last; ++i) {
    if (rule_ == Rule::kLinear && buckets_[i].width == width && buckets_[i].height == height)
      return {.bucket = static_cast<int32_t>(i)};
    const double error = std::abs(ratio - ratios_[i]);
    if (error >= best_error - slack) continue;
    best = i;
    best_error = error;
  }
  if (max_error_ > 0.0 && best_error > max_error_) return {.bucket = -1, .too_far = true};
  return {.bucket = static_cast<int32_t>(best)};
}

// As sd-scripts: a picture above the area is scaled down to it, so that one side is a multiple of the step,
// the side whose rounding changes the ratio less; then both sides are cut.
BucketTable::Choice BucketTable::cut_down(int64_t width, int64_t height) const {
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  if (static_cast<double>(width) * static_cast<double>(height) > area_) {
    const auto rounded = [&](double side) { return static_cast<int64_t>(side + 0.5) / step_ * step_; };
    const double exact_width = std::sqrt(area_ * ratio);
    const int64_t by_width = rounded(exact_width);
    const int64_t by_height = rounded(area_ / exact_width);
    if (by_width == 0 || by_height == 0) return {.bucket = -1, .too_small = true};
    const int64_t its_height = rounded(static_cast<double>(by_width) / ratio);
    const int64_t its_width = rounded(static_cast<double>(by_height) * ratio);
    if (its_height == 0 || its_width == 0) return {.bucket = -1, .too_small = true};
    const double width_error =
        std::abs(static_cast<double>(by_width) / static_cast<double>(its_height) - ratio);
    const double height_error =
        std::abs(static_cast<double>(its_width) / static_cast<double>(by_height) - ratio);
    if (width_error < height_error) {
      width = by_width;
      height = static_cast<int64_t>(static_cast<double>(by_width) / ratio + 0.5);
    } else {
      width = static_cast<int64_t>(static_cast<double>(by_height) * ratio + 0.5);
      height = by_height;
    }
  }
  const Bucket cut = bucket_of(width / step_ * step_, height / step_ * step_);
  if (cut.width == 0 || cut.height == 0) return {.bucket = -1, .too_small = true};
  auto at = std::lower_bound(buckets_.begin(), buckets_.end(), cut);
  // Rounding up may leave the area by less than a step; then the longer side gives one.
  if (at == buckets_.end() || *at != cut) {
    Bucket smaller = cut;
    (smaller.width >= smaller.height ? smaller.width : smaller.height) -= static_cast<int32_t>(step_);
    at = std::lower_bound(buckets_.begin(), buckets_.end(), smaller);
    CHILIAD_CHECK(at != buckets_.end() && *at == smaller, "no bucket {} x {}", smaller.width, smaller.height);
  }
  return {.bucket = static_cast<int32_t>(at - buckets_.begin())};
}

std::vector<Bucket> make_buckets(const spec::DataOptions& options) {
  return StagedBuckets(options).buckets();
}

int32_t assign_bucket(const std::vector<Bucket>& buckets, int64_t width, int64_t height) {
  CHILIAD_CHECK(!buckets.empty() && width > 0 && height > 0);
  const double ratio = std::log(static_cast<double>(width) / static_cast<double>(height));
  int32_t best = 0;
  double best_error = INFINITY;
  for (size_t i = 0; i < buckets.size(); ++i) {
    const double error =
        std::abs(ratio - std::log(static_cast<double>(buckets[i].width) / buckets[i].height));
    if (error >= best_error - 1e-12) continue;  // rounding must not decide a tie
    best = static_cast<int32_t>(i);
    best_error = error;
  }
  return best;
}

}  // namespace chiliad::stepplan
