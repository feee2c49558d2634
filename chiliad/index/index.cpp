#include "chiliad/index/index.h"

#include <fmt/core.h>

#include <algorithm>

#include "chiliad/base/error.h"

namespace chiliad::index {

Index Index::open(const std::filesystem::path& folder) {
  Index index;
  index.folder_ = folder;
  index.manifest_ = read_manifest(folder);
  int64_t next = 0;
  for (const ShardEntry& entry : index.manifest_.shards) {
    const auto path = folder / "shards" / entry.sidecar;
    Shard shard = read_sidecar(path);
    if (shard.content != entry.content) {
      throw CorruptData(path.string(),
                        fmt::format("content: is {}, expected {} as in manifest.json. Index again",
                                    shard.content.hex(), entry.content.hex()));
    }
    if (static_cast<int64_t>(shard.samples.size()) != entry.num_samples) {
      throw CorruptData(path.string(),
                        fmt::format("samples: has {}, expected {} as in manifest.json. Index again",
                                    shard.samples.size(), entry.num_samples));
    }
    index.first_sample_.push_back(next);
    next += entry.num_samples;
    index.shards_.push_back(std::move(shard));
  }
  return index;
}

Index::Location Index::locate(int64_t sample) const {
  CHILIAD_CHECK(sample >= 0 && sample < num_samples(), "sample {} of {}", sample, num_samples());
  const auto after = std::upper_bound(first_sample_.begin(), first_sample_.end(), sample);
  const auto shard = static_cast<size_t>(after - first_sample_.begin()) - 1;
  return {static_cast<uint32_t>(shard), static_cast<uint32_t>(sample - first_sample_[shard])};
}

const Sample& Index::sample(int64_t sample) const {
  const Location at = locate(sample);
  return shards_[at.shard].samples[at.sample];
}

const Shard& Index::shard_of(int64_t sample) const {
  return shards_[locate(sample).shard];
}

const Part* Index::image_part(int64_t sample) const {
  const Location at = locate(sample);
  const Shard& shard = shards_[at.shard];
  const Sample& row = shard.samples[at.sample];
  for (uint32_t p = 0; p < row.num_parts; ++p) {
    const Part& part = shard.parts[row.first_part + p];
    if (part.media == MediaType::kImage) return &part;
  }
  return nullptr;
}

const std::string& Index::key(int64_t sample) const {
  const Location at = locate(sample);
  return shards_[at.shard].keys[at.sample];
}

std::filesystem::path Index::part_path(const Shard& shard, const Part& part) const {
  return std::filesystem::path(manifest_.root) / shard.files[part.file].path;
}

}  // namespace chiliad::index
