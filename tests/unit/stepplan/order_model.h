#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "chiliad/base/rng.h"
#include "chiliad/index/index.h"
#include "chiliad/stepplan/permutation.h"
#include "chiliad/stepplan/plan.h"

namespace chiliad::test {

/// Section data with what its last stage that begins at or before `step` replaces.
inline spec::DataOptions options_at(const spec::DataOptions& options, int64_t step) {
  spec::DataOptions now = options;
  for (const auto& stage : options.stages) {
    if (step < stage.from) continue;
    now = options;
    if (!stage.buckets.empty()) now.buckets = stage.buckets;
    if (stage.resolution > 0) now.resolution = stage.resolution;
    if (stage.bucket_step > 0) now.bucket_step = stage.bucket_step;
    if (stage.bucket_min > 0) now.bucket_min = stage.bucket_min;
    if (stage.bucket_max > 0) now.bucket_max = stage.bucket_max;
  }
  now.stages.clear();
  return now;
}

/// The order of items as docs/formats/plan.md says it, written as slowly and plainly as one can: everything
/// in lists.
class OrderModel {
 public:
  /// Of the shards [first_shard, end_shard); `tokens` where items are documents.
  OrderModel(const index::Index& index, uint32_t first_shard, uint32_t end_shard,
             const spec::DataOptions& options, uint64_t seed, const stepplan::TokenCount* tokens = nullptr)
      : options_(options), seed_(seed) {
    for (uint32_t s = first_shard; s < end_shard; ++s) add_shard(index, s, tokens);
    keep(options.held_out, 0x68656C64ULL, false);
    if (options.limit > 0 && options.limit < size()) keep(options.limit, 0x6C696D6974ULL, true);
    std::erase_if(blocks_, [](const auto& block) { return block.empty(); });
    cut_windows();
  }

  int64_t size() const {
    int64_t sum = 0;
    for (const auto& block : blocks_) sum += static_cast<int64_t>(block.size());
    return sum;
  }

  int64_t steps_per_epoch() const {
    int64_t sum = 0;
    for (const auto& [begin, end] : windows_) sum += steps_of(end - begin);
    return sum;
  }

  /// The samples of an epoch, in order (without clusters).
  std::vector<int64_t> epoch(int64_t number) const {
    std::vector<int64_t> order;
    const auto row = row_of(number);
    for (size_t w = 0; w < windows_.size(); ++w)
      for (const Item& item : window_items(row, number, w)) order.push_back(item.sample);
    return order;
  }

  /// The samples of a step.
  std::vector<int64_t> step(int64_t step) const {
    const int64_t number = step / steps_per_epoch();
    int64_t j = step % steps_per_epoch();
    size_t w = 0;
    for (; j >= steps_of(windows_[w].second - windows_[w].first); ++w)
      j -= steps_of(windows_[w].second - windows_[w].first);
    auto items = window_items(row_of(number), number, w);
    const int64_t steps = steps_of(static_cast<int64_t>(items.size()));
    if (options_.shape_clusters > 1) {
      const int64_t first = step - j;  // of the window, in the run
      const auto buckets = stepplan::make_buckets(options_at(options_, first));
      const auto groups = group_of_buckets(buckets);
      std::stable_sort(items.begin(), items.end(), [&](const Item& a, const Item& b) {
        return groups[bucket_of(a, buckets)] < groups[bucket_of(b, buckets)];
      });
      j = static_cast<int64_t>(permuted(static_cast<size_t>(steps), number, 2, w)[static_cast<size_t>(j)]);
    }
    std::vector<int64_t> samples;
    const auto count = static_cast<int64_t>(items.size());
    for (int64_t i = j * count / steps; i < (j + 1) * count / steps; ++i)
      samples.push_back(items[static_cast<size_t>(i)].sample);
    return samples;
  }

 private:
  struct Item {
    int64_t sample;
    uint32_t width, height;
    uint64_t key_hash;
  };

  void add_shard(const index::Index& index, uint32_t s, const stepplan::TokenCount* tokens) {
    const auto shard = index.shard(s);
    for (const auto& block : shard->blocks) {
      blocks_.emplace_back();
      for (uint32_t i = block.first_sample; i < block.first_sample + block.num_samples; ++i) {
        const auto& sample = shard->samples[i];
        const int64_t number = index.first_sample(s) + i;
        if (tokens != nullptr) {
          if (sample.num_captions > 0 && (*tokens)(s, sample.first_caption) >= 2)
            blocks_.back().push_back({number, 0, 0, sample.key_hash});
          continue;
        }
        const auto& image = shard->parts[sample.first_part];
        if ((sample.flags & index::kBadImage) != 0 || !has_caption(*shard, sample)) continue;
        blocks_.back().push_back({number, image.width, image.height, sample.key_hash});
      }
    }
  }

  bool has_caption(const index::Shard& shard, const index::Sample& sample) const {
    for (uint32_t c = sample.first_caption; c < sample.first_caption + sample.num_captions; ++c) {
      const uint32_t language = shard.captions[c].language;
      for (const auto& name : options_.languages)
        if (language == 0 || language == index::language_code(name)) return true;
    }
    return options_.languages.empty();
  }

  /// Keeps, or takes away, the `count` items of the smallest keyed hashes.
  void keep(int64_t count, uint64_t key, bool keeps) {
    std::vector<std::pair<uint64_t, int64_t>> ranked;
    for (const auto& block : blocks_)
      for (const Item& item : block) ranked.emplace_back(mix64(item.key_hash ^ key), item.sample);
    std::sort(ranked.begin(), ranked.end());
    ranked.resize(static_cast<size_t>(count));
    for (auto& block : blocks_)
      std::erase_if(block, [&](const Item& item) {
        const bool chosen = std::find(ranked.begin(), ranked.end(),
                                      std::pair(mix64(item.key_hash ^ key), item.sample)) != ranked.end();
        return chosen != keeps;
      });
  }

  int64_t steps_of(int64_t items) const { return (items + options_.batch - 1) / options_.batch; }

  void cut_windows() {
    int64_t count = 1;
    if (options_.order == "window") {
      const auto by_blocks =
          (static_cast<int64_t>(blocks_.size()) + options_.window_blocks - 1) / options_.window_blocks;
      count = std::max<int64_t>(1, std::min(by_blocks, size() / (8 * options_.batch)));
    }
    for (int64_t w = 0; w < count; ++w) windows_.emplace_back(w * size() / count, (w + 1) * size() / count);
  }

  std::vector<size_t> permuted(size_t count, int64_t epoch, uint64_t what, uint64_t window) const {
    const auto key =
        Rng({seed_, static_cast<uint64_t>(epoch), static_cast<uint64_t>(Draw::kOrder), what, window})
            .next_u64();
    const stepplan::Permutation permute(count, key);
    std::vector<size_t> numbers;
    for (size_t i = 0; i < count; ++i) numbers.push_back(permute(i));
    return numbers;
  }

  std::vector<Item> row_of(int64_t epoch) const {
    std::vector<Item> row;
    std::vector<size_t> numbers(blocks_.size());
    for (size_t b = 0; b < numbers.size(); ++b) numbers[b] = b;
    if (options_.order == "window") numbers = permuted(blocks_.size(), epoch, 0, 0);
    for (const size_t b : numbers) row.insert(row.end(), blocks_[b].begin(), blocks_[b].end());
    return row;
  }

  std::vector<Item> window_items(const std::vector<Item>& row, int64_t epoch, size_t w) const {
    const auto [begin, end] = windows_[w];
    const std::vector<Item> plain(row.begin() + begin, row.begin() + end);
    if (options_.order == "sequential") return plain;
    std::vector<Item> items;
    for (const size_t i : permuted(plain.size(), epoch, 1, w)) items.push_back(plain[i]);
    return items;
  }

  static size_t bucket_of(const Item& item, const std::vector<stepplan::Bucket>& buckets) {
    return static_cast<size_t>(stepplan::assign_bucket(buckets, item.width, item.height));
  }

  std::vector<int32_t> group_of_buckets(const std::vector<stepplan::Bucket>& buckets) const {
    std::vector<int64_t> counts(buckets.size());
    for (const auto& block : blocks_)
      for (const Item& item : block) ++counts[bucket_of(item, buckets)];
    std::vector<int32_t> groups;
    int64_t before = 0;
    for (const int64_t count : counts) {
      const double middle = static_cast<double>(before) + static_cast<double>(count) / 2.0;
      groups.push_back(static_cast<int32_t>(middle / static_cast<double>(size()) *
                                            static_cast<double>(options_.shape_clusters)));
      before += count;
    }
    return groups;
  }

  spec::DataOptions options_;
  uint64_t seed_;
  std::vector<std::vector<Item>> blocks_;
  std::vector<std::pair<int64_t, int64_t>> windows_;
};

}  // namespace chiliad::test
