#pragma once

#include <algorithm>

#include "chiliad/dataset/detail/build_source.h"
#include "chiliad/index/content.h"

namespace chiliad::dataset::detail {

/// The samples of an index as what tars are built of.
class IndexSource final : public BuildSource {
 public:
  /// Both outlive it; throws InvalidInput for a wrong `where`.
  IndexSource(const index::Index& index, const TarOptions& options) : index_(index), maker_(index, options) {
    for (const index::ShardEntry& shard : index.manifest().shards) total_bytes_ += shard.payload_bytes;
  }

  [[nodiscard]] Digest digest() const override { return index_.manifest().digest; }
  [[nodiscard]] int64_t num_samples() const override { return index_.num_samples(); }
  [[nodiscard]] int64_t total_bytes() const override { return total_bytes_; }
  [[nodiscard]] Window open_window(int64_t first, int64_t max_samples, uint64_t max_bytes) override {
    Window window{first, 0};
    while (window.end < num_samples() && window.end - first < max_samples && window.bytes < max_bytes) {
      window.bytes += index::payload_bytes(*index_.shard_of(window.end), index_.sample(window.end));
      ++window.end;
    }
    return window;
  }
  [[nodiscard]] MadeSample make(int64_t sample) const override { return maker_.make(sample); }
  [[nodiscard]] std::string key(int64_t sample) const override { return index_.key(sample); }

 private:
  const index::Index& index_;
  SampleMaker maker_;
  int64_t total_bytes_ = 0;
};

}  // namespace chiliad::dataset::detail
