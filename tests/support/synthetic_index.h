#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "chiliad/base/rng.h"
#include "chiliad/index/index.h"
#include "chiliad/stepplan/pack.h"
#include "chiliad/stepplan/plan.h"

namespace chiliad::test {

/// What planning needs to know of a picture with one English caption.
struct PictureSize {
  uint32_t width = 0;
  uint32_t height = 0;
  uint32_t caption_bytes = 0;
};

/// Reads lines of width,height,caption_bytes under a heading.
inline std::vector<PictureSize> read_sizes(const std::filesystem::path& csv) {
  std::ifstream file(csv);
  if (!file) throw std::runtime_error("cannot read " + csv.string());
  std::vector<PictureSize> sizes;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    PictureSize size;
    if (std::sscanf(line.c_str(), "%u,%u,%u", &size.width, &size.height, &size.caption_bytes) == 3) {
      sizes.push_back(size);
    }
  }
  return sizes;
}

/// `count` sizes drawn from `pool`.
inline std::vector<PictureSize> draw_sizes(const std::vector<PictureSize>& pool, int64_t count,
                                           uint64_t seed) {
  Rng rng({seed, 0x73697A6573ULL});
  std::vector<PictureSize> sizes;
  for (int64_t i = 0; i < count; ++i) sizes.push_back(pool[rng.below(pool.size())]);
  return sizes;
}

/// An index without files behind it: shards of `shard_samples` samples, blocks of `block_samples`.
inline index::Index synthetic_index(const std::vector<PictureSize>& sizes, uint32_t shard_samples = 1000,
                                    uint32_t block_samples = 20) {
  std::vector<index::Shard> shards;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (i % shard_samples == 0) shards.emplace_back().content = {1, i};
    index::Shard& shard = shards.back();
    const auto local = static_cast<uint32_t>(shard.samples.size());
    if (local % block_samples == 0) shard.blocks.push_back({local, 0, 0});
    ++shard.blocks.back().num_samples;
    index::Sample sample;
    sample.key_hash = mix64(i);
    sample.first_part = 2 * local;
    sample.num_parts = 2;
    sample.first_caption = local;
    sample.num_captions = 1;
    sample.flags = index::kHasImage;
    shard.samples.push_back(sample);
    index::Part image;
    image.media = index::MediaType::kImage;
    image.width = sizes[i].width;
    image.height = sizes[i].height;
    index::Part text;
    text.media = index::MediaType::kText;
    shard.parts.push_back(image);
    shard.parts.push_back(text);
    shard.captions.push_back({2 * local + 1, 0, sizes[i].caption_bytes, index::language_code("en")});
    shard.keys.push_back("item" + std::to_string(i));
  }
  return index::Index::from_shards({}, std::move(shards));
}

/// A byte is a token, at most 128, at least 1.
inline stepplan::TokenCount byte_tokens(const index::Index& index) {
  return [&index](uint32_t shard, uint32_t caption) {
    return std::clamp(index.shards()[shard].captions[caption].length, 1U, 128U);
  };
}

/// A transformer on patches of 4 x 4 pixels with joint attention over picture and caption; one item of 32 x
/// 32 pixels costs about 1, a micro-batch `overhead` beside its items.
inline stepplan::WorkModel transformer_work(double overhead = 0.3) {
  return [overhead](stepplan::Bucket bucket, int64_t num_items, int64_t max_tokens) {
    const double tokens =
        static_cast<double>(bucket.width) * bucket.height / 16.0 + static_cast<double>(max_tokens);
    return overhead + static_cast<double>(num_items) * (tokens / 110.0 + tokens * tokens / 250'000.0);
  };
}

}  // namespace chiliad::test
