#include "chiliad/index/sample_columns.h"

#include <algorithm>

#include "chiliad/base/error.h"

namespace chiliad::index {
namespace {

// Samples outside of every block would be lost: a block reaches to the first sample of the next one.
size_t blocks_of(const Shard& shard) {
  return std::max<size_t>(1, shard.blocks.size());
}

BlockRows::Sample row_of(const Shard& shard, const Sample& sample) {
  BlockRows::Sample row;
  row.key_hash = sample.key_hash;
  row.first_caption = sample.first_caption;
  row.num_captions = sample.num_captions;
  if ((sample.flags & kBadImage) != 0) return row;
  for (uint32_t i = 0; i < sample.num_parts; ++i) {
    const Part& part = shard.parts.at(sample.first_part + i);
    if (part.media != MediaType::kImage) continue;
    if (part.width == 0 || part.height == 0) return row;
    row.width = part.width;
    row.height = part.height;
    return row;
  }
  return row;
}

}  // namespace

IndexColumns::IndexColumns(const Index& index, uint32_t first_shard, uint32_t end_shard)
    : index_(index), first_shard_(first_shard), first_block_{0} {
  for (uint32_t s = first_shard; s < end_shard; ++s) {
    const ShardPtr shard = index.shard(s);
    first_block_.push_back(first_block_.back() + static_cast<int64_t>(blocks_of(*shard)));
    num_samples_ += static_cast<int64_t>(shard->samples.size());
  }
}

void IndexColumns::read(int64_t block, BlockRows& rows) const {
  const auto after = std::upper_bound(first_block_.begin(), first_block_.end(), block);
  const auto local = static_cast<uint32_t>(after - first_block_.begin() - 1);
  rows.shard = first_shard_ + local;
  const ShardPtr shard = index_.shard(rows.shard);
  const auto b = static_cast<size_t>(block - first_block_[local]);
  const size_t first = b == 0 ? 0 : shard->blocks.at(b).first_sample;
  const size_t end = b + 1 < blocks_of(*shard) ? shard->blocks[b + 1].first_sample : shard->samples.size();
  CHILIAD_CHECK(first <= end && end <= shard->samples.size(), "block {} of shard {}", b, rows.shard);
  rows.first_sample = index_.first_sample(rows.shard) + static_cast<int64_t>(first);
  rows.counted = false;
  rows.samples.clear();
  rows.captions.clear();
  for (size_t i = first; i < end; ++i) {
    const Sample& sample = shard->samples[i];
    rows.samples.push_back(row_of(*shard, sample));
    rows.samples.back().captions_at = static_cast<uint32_t>(rows.captions.size());
    for (uint32_t c = 0; c < sample.num_captions; ++c)
      rows.captions.push_back({shard->captions.at(sample.first_caption + c).language, 0});
  }
}

}  // namespace chiliad::index
