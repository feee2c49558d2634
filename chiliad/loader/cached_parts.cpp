#include "chiliad/loader/cached_parts.h"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>

#include "chiliad/base/error.h"
#include "chiliad/loader/conversations.h"
#include "chiliad/store/store.h"

namespace chiliad::loader {
namespace {

/// Bytes between two parts that cost less than another request.
constexpr int64_t kLargestGap = 1 << 20;
/// So many parts of a block are verified when it arrives; all are when they are used.
constexpr size_t kMostChecks = 4096;

struct Place {
  uint32_t file = 0;
  store::PartCheck check;
};

/// Every part of a block's samples, once, by file and offset.
std::vector<Place> places_of(const index::Shard& shard, const index::Block& block) {
  std::vector<Place> places;
  for (uint32_t i = block.first_sample; i < block.first_sample + block.num_samples; ++i) {
    const index::Sample& sample = shard.samples[i];
    for (uint32_t p = sample.first_part; p < sample.first_part + sample.num_parts; ++p) {
      const index::Part& part = shard.parts[p];
      if (part.length == 0) continue;
      places.push_back(
          {part.file, {static_cast<int64_t>(part.offset), static_cast<int64_t>(part.length), part.checksum}});
    }
  }
  const auto order = [](const Place& place) { return std::pair(place.file, place.check.offset); };
  std::sort(places.begin(), places.end(),
            [&](const Place& a, const Place& b) { return order(a) < order(b); });
  const auto same = [&](const Place& a, const Place& b) {
    return order(a) == order(b) && a.check.length == b.check.length;
  };
  places.erase(std::unique(places.begin(), places.end(), same), places.end());
  return places;
}

}  // namespace

std::vector<std::string> remote_roots(const index::Index& index) {
  std::vector<std::string> roots;
  for (const auto& member : index.members()) {
    if (store::is_remote(member.root)) roots.push_back(member.root);
  }
  return roots;
}

PartBlocks::Table PartBlocks::make_table(const index::Shard& shard) const {
  Table table;
  std::vector<std::pair<uint32_t, store::BlockSpec>> ranges;
  for (const index::Block& block : shard.blocks) {
    const size_t first = ranges.size();
    for (const Place& place : places_of(shard, block)) {
      const bool is_next =
          ranges.size() > first && ranges.back().first == place.file &&
          place.check.offset - (ranges.back().second.offset + ranges.back().second.length) <= kLargestGap;
      if (!is_next) {
        ranges.emplace_back(place.file, store::BlockSpec{shard.root, shard.files.at(place.file).path,
                                                         place.check.offset, place.check.length});
      }
      store::BlockSpec& range = ranges.back().second;
      range.length = std::max(range.length, place.check.offset + place.check.length - range.offset);
      if (range.parts.size() < kMostChecks) range.parts.push_back(place.check);
    }
  }
  std::stable_sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.first, a.second.offset, a.second.length) <
           std::tuple(b.first, b.second.offset, b.second.length);
  });
  for (auto& [file, range] : ranges) {
    const std::pair start{file, range.offset};
    // What two blocks share is fetched once, with the longer of them.
    if (!table.starts.empty() && table.starts.back().first == start) {
      table.blocks.back() = std::move(range);
      continue;
    }
    table.starts.emplace_back(start, table.blocks.size());
    table.blocks.push_back(std::move(range));
  }
  return table;
}

std::shared_ptr<const PartBlocks::Table> PartBlocks::table_of(const index::Shard& shard) const {
  const std::tuple key{shard.content, shard.root,
                       shard.files.empty() ? std::string() : shard.files.front().path};
  {
    std::lock_guard lock(mutex_);
    const auto found = tables_.find(key);
    if (found != tables_.end()) return found->second;
  }
  auto table = std::make_shared<const Table>(make_table(shard));
  std::lock_guard lock(mutex_);
  return tables_.try_emplace(key, std::move(table)).first->second;
}

store::BlockSpec PartBlocks::block_of(const index::Shard& shard, const index::Part& part) const {
  const auto table = table_of(shard);
  const std::pair start{part.file, static_cast<int64_t>(part.offset)};
  auto after = std::upper_bound(table->starts.begin(), table->starts.end(), start,
                                [](const auto& wanted, const auto& entry) { return wanted < entry.first; });
  const int64_t end = start.second + static_cast<int64_t>(part.length);
  while (after != table->starts.begin()) {
    --after;
    if (after->first.first != part.file) break;
    const store::BlockSpec& block = table->blocks[after->second];
    if (end <= block.offset + block.length) return block;
  }
  throw CorruptData(
      shard.files.at(part.file).path,
      fmt::format("index: bytes {}-{} are in no block. Index the data again", start.second, end));
}

std::vector<store::BlockSpec> PartBlocks::blocks_of(const stepplan::Step& step) const {
  std::vector<store::BlockSpec> blocks;
  const auto add = [&](const index::Shard& shard, const index::Part& part) {
    if (part.length == 0) return;
    store::BlockSpec block = block_of(shard, part);
    const auto is_same = [&](const store::BlockSpec& other) {
      return other.offset == block.offset && other.length == block.length && other.object == block.object &&
             other.store == block.store;
    };
    if (std::none_of(blocks.begin(), blocks.end(), is_same)) blocks.push_back(std::move(block));
  };
  for (const stepplan::Item& item : step.items) {
    if (item.weight == 0.0F) continue;
    const auto [number, sample] = index_.locate(item.sample);
    const auto held = index_.shard(number);
    const index::Shard& shard = *held;
    if (!store::is_remote(shard.root)) continue;
    for (const index::Part* picture : picture_parts(shard, shard.samples[sample])) add(shard, *picture);
    if (item.caption < 0) continue;
    add(shard, shard.parts.at(shard.captions.at(static_cast<size_t>(item.caption)).part));
  }
  return blocks;
}

int64_t CachedParts::read(const index::Shard& shard, const index::Part& part, std::span<std::byte> out) {
  if (out.empty()) return 0;
  if (!store::is_remote(shard.root)) return files_.read(shard, part, out);
  return client_.read(blocks_.block_of(shard, part), static_cast<int64_t>(part.offset), out);
}

void CachedParts::distrust(const index::Shard& shard, const index::Part& part) {
  if (!store::is_remote(shard.root)) return files_.distrust(shard, part);
  client_.distrust(blocks_.block_of(shard, part));
}

std::string CachedParts::change_note(const index::Shard& shard, const index::Part& part) {
  return store::is_remote(shard.root) ? std::string() : files_.change_note(shard, part);
}

}  // namespace chiliad::loader
