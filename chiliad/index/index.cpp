#include "chiliad/index/index.h"

#include <fmt/core.h>

#include <algorithm>
#include <list>
#include <map>
#include <mutex>
#include <utility>

#include "chiliad/base/error.h"

namespace chiliad::index {
namespace {

Shard read_shard(const std::filesystem::path& folder, const ShardEntry& entry, const std::string& root) {
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
  shard.root = root;
  return shard;
}

const Part* image_in(const Shard& shard, const Sample& sample) {
  for (uint32_t p = 0; p < sample.num_parts; ++p) {
    const Part& part = shard.parts[sample.first_part + p];
    if (part.media == MediaType::kImage) return &part;
  }
  return nullptr;
}

}  // namespace

/// The shards' columns: all in memory, or those used last, or those of several indexes.
class Index::Columns : public std::enable_shared_from_this<Index::Columns> {
 public:
  explicit Columns(std::vector<Shard> all) : all_(std::move(all)), has_all_(true) {}
  Columns(std::filesystem::path folder, const Manifest& manifest, size_t max_shards)
      : folder_(std::move(folder)),
        root_(manifest.root),
        entries_(manifest.shards),
        max_shards_(max_shards) {}
  /// Of indexes in a row.
  explicit Columns(std::vector<std::pair<uint32_t, std::shared_ptr<Columns>>> rows)
      : rows_(std::move(rows)) {}

  [[nodiscard]] ShardPtr get(uint32_t number) {
    {
      std::lock_guard lock(mutex_);
      if (has_all_) return {shared_from_this(), &all_.at(number)};
      const auto found = recent_.find(number);
      if (found != recent_.end()) {
        used_.splice(used_.begin(), used_, found->second.second);
        return found->second.first;
      }
    }
    if (!rows_.empty()) {
      auto row = std::prev(std::upper_bound(rows_.begin(), rows_.end(), number,
                                            [](uint32_t n, const auto& r) { return n < r.first; }));
      return row->second->get(number - row->first);
    }
    auto made =
        std::make_shared<const Shard>(read_shard(folder_, entries_.at(number), root_));  // slow: no lock
    std::lock_guard lock(mutex_);
    if (recent_.contains(number)) return made;
    used_.push_front(number);
    recent_.emplace(number, std::pair(made, used_.begin()));
    if (used_.size() > max_shards_) {
      recent_.erase(used_.back());
      used_.pop_back();
    }
    return made;
  }

  [[nodiscard]] const std::vector<Shard>& all(uint32_t count) {
    std::lock_guard load(load_mutex_);
    {
      std::lock_guard lock(mutex_);
      if (has_all_) return all_;
    }
    std::vector<Shard> loaded;
    for (uint32_t i = 0; i < count; ++i) loaded.push_back(*get(i));
    std::lock_guard lock(mutex_);
    all_ = std::move(loaded);
    has_all_ = true;
    return all_;
  }

  [[nodiscard]] bool is_loaded() {
    {
      std::lock_guard lock(mutex_);
      if (has_all_) return true;
    }
    return !rows_.empty() &&
           std::all_of(rows_.begin(), rows_.end(), [](const auto& row) { return row.second->is_loaded(); });
  }

 private:
  const std::filesystem::path folder_;
  const std::string root_;
  const std::vector<ShardEntry> entries_;
  const size_t max_shards_ = 0;
  const std::vector<std::pair<uint32_t, std::shared_ptr<Columns>>> rows_;  // first shard of each index

  std::mutex load_mutex_;  // held by whoever loads all
  std::mutex mutex_;       // guards the rest
  std::vector<Shard> all_;
  bool has_all_ = false;
  std::list<uint32_t> used_;  // last first
  std::map<uint32_t, std::pair<ShardPtr, std::list<uint32_t>::iterator>> recent_;
};

Index Index::open(const std::filesystem::path& folder, const OpenOptions& options) {
  Index index;
  index.manifest_ = read_manifest(folder);
  const Manifest& manifest = index.manifest_;
  if (manifest.num_samples <= options.eager_samples) {
    std::vector<Shard> shards;
    for (const ShardEntry& entry : manifest.shards)
      shards.push_back(read_shard(folder, entry, manifest.root));
    index.columns_ = std::make_shared<Columns>(std::move(shards));
  } else {
    index.columns_ = std::make_shared<Columns>(folder, manifest, options.max_shards);
  }
  index.first_sample_.push_back(0);
  for (const ShardEntry& entry : manifest.shards)
    index.first_sample_.push_back(index.first_sample_.back() + entry.num_samples);
  index.members_.push_back(
      {folder, manifest.digest, 0, index.num_shards(), 0, index.num_samples(), manifest.root});
  return index;
}

Index Index::from_shards(Manifest manifest, std::vector<Shard> shards) {
  Index index;
  Hasher hasher;
  hasher.add(manifest.layout);
  index.first_sample_.push_back(0);
  manifest.shards.clear();
  for (Shard& shard : shards) {
    hasher.add(shard.content);
    const auto count = static_cast<int64_t>(shard.samples.size());
    index.first_sample_.push_back(index.first_sample_.back() + count);
    if (!manifest.root.empty() || shard.root.empty()) shard.root = manifest.root;
    manifest.shards.push_back({"", shard.content, count, 0});
  }
  index.manifest_ = std::move(manifest);
  index.manifest_.num_samples = index.first_sample_.back();
  index.manifest_.digest = hasher.digest();
  index.columns_ = std::make_shared<Columns>(std::move(shards));
  index.members_.push_back(
      {{}, index.manifest_.digest, 0, index.num_shards(), 0, index.num_samples(), index.manifest_.root});
  return index;
}

Index Index::concatenate(std::vector<Index> parts) {
  CHILIAD_CHECK(!parts.empty());
  if (parts.size() == 1) return std::move(parts.front());
  Index index;
  Hasher hasher;
  hasher.add("chiliad data sets 1");
  index.first_sample_.push_back(0);
  std::vector<std::pair<uint32_t, std::shared_ptr<Columns>>> rows;
  for (const Index& part : parts) {
    const uint32_t first_shard = index.num_shards();
    const int64_t first_sample = index.first_sample_.back();
    rows.emplace_back(first_shard, part.columns_);
    hasher.add(part.manifest_.digest);
    for (const ShardEntry& entry : part.manifest_.shards) {
      index.manifest_.shards.push_back(entry);
      index.first_sample_.push_back(index.first_sample_.back() + entry.num_samples);
    }
    index.manifest_.num_bad += part.manifest_.num_bad;
    for (const Member& inner : part.members_) {
      index.members_.push_back({inner.folder, inner.digest, first_shard + inner.first_shard,
                                first_shard + inner.end_shard, first_sample + inner.first_sample,
                                first_sample + inner.end_sample, inner.root});
    }
  }
  index.manifest_.num_samples = index.first_sample_.back();
  index.manifest_.digest = hasher.digest();
  index.columns_ = std::make_shared<Columns>(std::move(rows));
  return index;
}

const std::filesystem::path& Index::folder_of(uint32_t shard) const {
  const auto after =
      std::upper_bound(members_.begin(), members_.end(), shard,
                       [](uint32_t number, const Member& member) { return number < member.end_shard; });
  CHILIAD_CHECK(after != members_.end(), "shard {} of {}", shard, num_shards());
  return after->folder;
}

bool Index::is_loaded() const {
  return columns_->is_loaded();
}

ShardPtr Index::shard(uint32_t number) const {
  return columns_->get(number);
}

const std::vector<Shard>& Index::shards() const {
  return columns_->all(num_shards());
}

Index::Location Index::locate(int64_t sample) const {
  CHILIAD_CHECK(sample >= 0 && sample < num_samples(), "sample {} of {}", sample, num_samples());
  const auto after = std::upper_bound(first_sample_.begin(), first_sample_.end(), sample);
  const auto shard = static_cast<size_t>(after - first_sample_.begin()) - 1;
  return {static_cast<uint32_t>(shard), static_cast<uint32_t>(sample - first_sample_[shard])};
}

Sample Index::sample(int64_t sample) const {
  const Location at = locate(sample);
  return shard(at.shard)->samples[at.sample];
}

ShardPtr Index::shard_of(int64_t sample) const {
  return shard(locate(sample).shard);
}

std::shared_ptr<const Part> Index::image_part(int64_t sample) const {
  const Location at = locate(sample);
  const ShardPtr columns = shard(at.shard);
  const Part* part = image_in(*columns, columns->samples[at.sample]);
  return part == nullptr ? nullptr : std::shared_ptr<const Part>(columns, part);
}

std::string Index::key(int64_t sample) const {
  const Location at = locate(sample);
  return shard(at.shard)->keys[at.sample];
}

std::filesystem::path Index::part_path(const Shard& shard, const Part& part) const {
  return std::filesystem::path(shard.root) / shard.files[part.file].path;
}

}  // namespace chiliad::index
