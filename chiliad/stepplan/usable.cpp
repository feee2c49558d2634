#include "chiliad/stepplan/usable.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <utility>

#include "chiliad/base/rng.h"
#include "chiliad/index/columns.h"
#include "chiliad/stepplan/plan.h"

namespace chiliad::stepplan {
namespace {

double aspect_error(uint32_t width, uint32_t height, Bucket bucket) {
  const double ratio = static_cast<double>(width) / height;
  return std::abs(std::log(ratio * bucket.height / bucket.width));
}

/// Buckets of the shapes met last: data sets have few shapes, and a choice takes a logarithm a bucket.
class RecentShapes {
 public:
  template <typename Choose>
  int32_t bucket(uint64_t owner, uint32_t width, uint32_t height, const Choose& choose) {
    const uint64_t shape = uint64_t{width} << 32 | height;
    Entry& entry = entries_[mix64(shape) % entries_.size()];
    if (entry.owner != owner || entry.shape != shape) entry = {owner, shape, choose()};
    return entry.bucket;
  }

 private:
  struct Entry {
    uint64_t owner = 0;
    uint64_t shape = 0;
    int32_t bucket = 0;
  };
  std::array<Entry, 8192> entries_{};
};

uint64_t next_number() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace

Coverage& Coverage::operator+=(const Coverage& other) {
  in_index += other.in_index;
  in_order += other.in_order;
  bad_image += other.bad_image;
  no_caption += other.no_caption;
  aspect += other.aspect;
  over_limit += other.over_limit;
  held_out += other.held_out;
  too_short += other.too_short;
  cut += other.cut;
  cut_tokens += other.cut_tokens;
  return *this;
}

Usable::Usable(const spec::DataOptions& options, std::vector<Bucket> buckets, bool of_documents,
               TokenCount tokens)
    : number_(next_number()),
      buckets_(std::move(buckets)),
      of_documents_(of_documents),
      max_aspect_error_(options.max_aspect_error),
      sequence_length_(options.sequence_length),
      tokens_(std::move(tokens)) {
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
  thread_local RecentShapes recent;
  // -1: beyond the bound of the aspect.
  const int32_t bucket = recent.bucket(number_, sample.width, sample.height, [&] {
    const int32_t chosen = assign_bucket(buckets_, sample.width, sample.height);
    const bool beyond =
        max_aspect_error_ > 0.0 &&
        aspect_error(sample.width, sample.height, buckets_[static_cast<size_t>(chosen)]) > max_aspect_error_;
    return beyond ? -1 : chosen;
  });
  if (bucket >= 0) return bucket;
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
  for (const Bucket bucket : buckets_) hasher.add(bucket.width).add(bucket.height);
  hasher.add(static_cast<int64_t>(languages_.size()));
  for (const uint32_t language : languages_) hasher.add(uint64_t{language});
  return hasher.digest();
}

}  // namespace chiliad::stepplan
