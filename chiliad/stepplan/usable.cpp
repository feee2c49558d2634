#include "chiliad/stepplan/usable.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "chiliad/index/columns.h"
#include "chiliad/spec/shape_stages.h"

namespace chiliad::stepplan {
namespace {

double aspect_error(uint32_t width, uint32_t height, Bucket bucket) {
  const double ratio = static_cast<double>(width) / height;
  return std::abs(std::log(ratio * bucket.height / bucket.width));
}

}  // namespace

Coverage& Coverage::operator+=(const Coverage& other) {
  in_index += other.in_index;
  in_order += other.in_order;
  bad_image += other.bad_image;
  no_caption += other.no_caption;
  aspect += other.aspect;
  too_small += other.too_small;
  over_limit += other.over_limit;
  held_out += other.held_out;
  too_short += other.too_short;
  cut += other.cut;
  cut_tokens += other.cut_tokens;
  return *this;
}

void add_buckets(const spec::DataOptions& options, Hasher& hasher) {
  if (options.buckets != "auto") hasher.add("buckets").add(options.buckets);
  if (options.bucket_no_upscale) hasher.add("no upscale");
  if (options.bucket_choice == "auto") return;
  hasher.add("bucket_choice").add(options.bucket_choice);
  if (options.bucket_choice == "most_pixels") hasher.add(options.max_crop);
}

Usable::Usable(const spec::DataOptions& options, std::optional<StagedBuckets> table, bool of_documents,
               TokenCount tokens)
    : table_(std::move(table)),
      of_documents_(of_documents),
      max_aspect_error_(options.max_aspect_error),
      sequence_length_(options.sequence_length),
      tokens_(std::move(tokens)) {
  Hasher recipe;
  add_buckets(options, recipe);
  if (!options.stages.empty()) {
    for (const spec::DataOptions& stage : spec::stage_options(options)) add_buckets(stage, recipe);
  }
  recipe_ = recipe.digest();
  for (const std::string& language : options.languages) languages_.push_back(index::language_code(language));
}

bool Usable::wanted(uint32_t language) const {
  return languages_.empty() || language == 0 ||
         std::find(languages_.begin(), languages_.end(), language) != languages_.end();
}

uint32_t Usable::tokens(const index::BlockRows& rows, const index::BlockRows::Sample& sample,
                        uint32_t c) const {
  if (rows.counted) return rows.captions[sample.captions_at + c].tokens;
  return tokens_(rows.shard, sample.first_caption + c);
}

std::optional<int32_t> Usable::bucket_of(const index::BlockRows& rows, size_t i, Coverage& coverage) const {
  const auto& sample = rows.samples[i];
  if (!of_documents_ && sample.width == 0) {
    ++coverage.bad_image;
    return std::nullopt;
  }
  if (draws_captions()) {
    const auto first = rows.captions.begin() + sample.captions_at;
    const bool any = std::any_of(first, first + sample.num_captions,
                                 [&](const auto& caption) { return wanted(caption.language); });
    if (!any) {
      ++coverage.no_caption;
      return std::nullopt;
    }
  }
  if (of_documents_) return is_long_enough(rows, sample, coverage) ? std::optional(0) : std::nullopt;
  const auto bucket = bucket_of_picture(0, sample.width, sample.height, coverage);
  for (size_t stage = 1; bucket && stage < num_stages(); ++stage) {
    if (!bucket_of_picture(stage, sample.width, sample.height, coverage)) return std::nullopt;
  }
  return bucket;
}

int32_t Usable::bucket_in(size_t stage, const index::BlockRows::Sample& sample) const {
  return of_documents_ ? 0 : table_->assign(stage, sample.width, sample.height).bucket;
}

std::optional<int32_t> Usable::bucket_of_picture(size_t stage, uint32_t width, uint32_t height,
                                                 Coverage& coverage) const {
  const BucketTable::Choice choice = table_->assign(stage, width, height);
  if (choice.too_small) {
    ++coverage.too_small;
    return std::nullopt;
  }
  const auto is_far = [&](double limit) {
    return aspect_error(width, height, table_->buckets()[static_cast<size_t>(choice.bucket)]) > limit;
  };
  if (!choice.too_far && (max_aspect_error_ == 0.0 || !is_far(max_aspect_error_))) return choice.bucket;
  ++coverage.aspect;
  return std::nullopt;
}

// Any of the wanted captions may be drawn, so all must have a target.
bool Usable::is_long_enough(const index::BlockRows& rows, const index::BlockRows::Sample& sample,
                            Coverage& coverage) const {
  const int64_t most = sequence_length_ + 1;
  for (uint32_t c = 0; c < sample.num_captions; ++c) {
    if (!wanted(rows.captions[sample.captions_at + c].language)) continue;
    const int64_t count = tokens(rows, sample, c);
    if (count < 2) {
      ++coverage.too_short;
      return false;
    }
    if (count <= most) continue;
    ++coverage.cut;
    coverage.cut_tokens += count - most;
  }
  return true;
}

Digest Usable::digest() const {
  Hasher hasher;
  hasher.add("usable 1").add(of_documents_ ? 1 : 0).add(max_aspect_error_);
  if (of_documents_) hasher.add(sequence_length_);
  if (table_) {
    for (const Bucket bucket : table_->buckets()) hasher.add(bucket.width).add(bucket.height);
  }
  hasher.add(recipe_);
  hasher.add(static_cast<int64_t>(languages_.size()));
  for (const uint32_t language : languages_) hasher.add(uint64_t{language});
  return hasher.digest();
}

}  // namespace chiliad::stepplan
