#include "chiliad/store/block_cache.h"

#include <fmt/core.h>

#include <algorithm>

#include "chiliad/base/error.h"
#include "chiliad/base/log.h"
#include "chiliad/base/planted.h"

namespace chiliad::store {

BlockCache::BlockCache(BlockFolder& folder, const FutureUse& future, Fetch fetch, const Options& options,
                       const Clock& clock)
    : folder_(folder), future_(future), fetch_(std::move(fetch)), options_(options), clock_(clock) {
  recover();
}

// The bound may be smaller than it was.
void BlockCache::recover() {
  for (const BlockFolder::Found& found : folder_.recover()) {
    if (bytes_ + found.file_bytes > options_.max_bytes) {
      folder_.remove(found.footer.key);
      continue;
    }
    entries_[found.footer.key] = {next_number_++, found.footer, found.file_bytes, 0, true, false, false};
    bytes_ += found.file_bytes;
  }
}

BlockCache::Lease::~Lease() {
  if (cache_ != nullptr) cache_->release(key_, entry_);
}

void BlockCache::release(const Digest& key, uint64_t entry) {
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found != entries_.end() && found->second.number == entry) --found->second.pins;
  changed_.notify_all();
}

std::optional<BlockCache::Lease> BlockCache::acquire(const BlockSpec& spec) {
  constexpr int kFetches = 3;  // of one call: a disk that returns other bytes than it took is passed by
  const Digest key = spec.key();
  int fetches = 0;
  Lock lock(mutex_);
  while (true) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) {
      if (++fetches > kFetches || disk_rests()) break;
      if (!make_room(spec.length + kBlockFooterBytes, FutureUse::kNever)) break;
      reserve(spec, key);
      fetch_reserved(spec, key, lock);
      if (!entries_.contains(key)) break;
    } else if (!found->second.ready) {
      changed_.wait(lock);
    } else if (found->second.distrusted) {
      if (!drop(key)) break;
    } else if (auto lease = lease_ready(key, lock)) {
      if (fetches == 0) ++stats_.hits;
      return lease;
    }
  }
  ++stats_.passed_through;
  return std::nullopt;
}

/// Nothing where the file on disk turned out to be damaged; it is distrusted then.
std::optional<BlockCache::Lease> BlockCache::lease_ready(const Digest& key, Lock& lock) {
  Entry& entry = entries_.at(key);
  ++entry.pins;
  const Entry seen = entry;
  lock.unlock();
  std::optional<io::File> file;
  std::string problem;
  try {
    file.emplace(folder_.open(key));
    if (!seen.verified && !folder_.is_intact(*file, seen.footer)) problem = "its digest is wrong";
  } catch (const Error& error) {
    problem = error.what();
  }
  lock.lock();
  const auto again = entries_.find(key);
  const bool same = again != entries_.end() && again->second.number == seen.number;
  if (problem.empty()) {
    if (same) again->second.verified = true;
    return Lease(this, key, seen.number, seen.footer.payload_bytes, *std::move(file));
  }
  if (!same) return std::nullopt;  // distrusted by somebody else, and dropped
  --again->second.pins;
  if (!again->second.distrusted) {
    ++stats_.dropped;
    log_warn("block cache: {}.block is dropped and fetched again: {}", key.hex(), problem);
  }
  again->second.distrusted = true;
  return std::nullopt;
}

void BlockCache::reserve(const BlockSpec& spec, const Digest& key) {
  const int64_t bytes = spec.length + kBlockFooterBytes;
  entries_[key] = {next_number_++, {}, bytes, 0, false, false, false};
  bytes_ += bytes;
}

/// The entry is gone afterwards where the disk did not take the block.
void BlockCache::fetch_reserved(const BlockSpec& spec, const Digest& key, Lock& lock) {
  lock.unlock();
  FetchedBlock fetched;
  try {
    fetched = fetch_(spec);
  } catch (...) {
    lock.lock();
    bytes_ -= entries_.at(key).bytes;
    entries_.erase(key);
    changed_.notify_all();
    throw;
  }
  store_block(key, fetched, lock);
}

/// Called without the lock, returns with it.
void BlockCache::store_block(const Digest& key, const FetchedBlock& fetched, Lock& lock) {
  const BlockFooter footer{key, static_cast<int64_t>(fetched.bytes.size()), hash128(fetched.bytes),
                           fetched.damaged};
  std::optional<Unavailable> trouble;
  try {
    folder_.write(footer, fetched.bytes);
  } catch (const Unavailable& error) {
    trouble = error;
  }
  lock.lock();
  ++stats_.fetched;
  Entry& entry = entries_.at(key);
  bytes_ -= entry.bytes;
  if (trouble.has_value()) {
    entries_.erase(key);
    note_disk_trouble(*trouble);
  } else {
    const int64_t file_bytes = footer.payload_bytes + kBlockFooterBytes;
    entry = {entry.number, footer, file_bytes, 0, true, true, false};
    bytes_ += file_bytes;
    disk_bad_until_.reset();
  }
  changed_.notify_all();
}

void BlockCache::note_disk_trouble(const Error& error) {
  if (!disk_bad_until_.has_value()) {
    log_warn("block cache: {}. Reads pass it by; it is tried again every {:.0f} s", error.what(),
             to_seconds(options_.disk_pause));
  }
  disk_bad_until_ = clock_.now() + options_.disk_pause;
}

bool BlockCache::disk_rests() const {
  return disk_bad_until_.has_value() && clock_.now() < *disk_bad_until_;
}

BlockCache::Room BlockCache::make_room_ahead(const BlockSpec& spec) {
  const Digest key = spec.key();
  Lock lock(mutex_);
  // By what is known now, not when the block was chosen: steps may have ended since.
  const int64_t use = future_.next_use(key);
  if (entries_.contains(key) || use == FutureUse::kNever) return Room::kNotNeeded;
  if (disk_rests() || !make_room(spec.length + kBlockFooterBytes, use)) return Room::kNone;
  reserve(spec, key);
  return Room::kMade;
}

void BlockCache::fetch_ahead(const BlockSpec& spec) {
  const Digest key = spec.key();
  Lock lock(mutex_);
  fetch_reserved(spec, key, lock);
}

/// Drops blocks until `bytes` more fit; only such as are used later than `for_step` (kNever: any).
bool BlockCache::make_room(int64_t bytes, int64_t for_step) {
  if (bytes > options_.max_bytes && !planted_bug("cache_over_bound")) return false;
  while (bytes_ + bytes > options_.max_bytes && !planted_bug("cache_over_bound")) {
    const auto victim = next_victim(for_step);
    if (!victim.has_value()) return false;
    if (!drop(*victim)) return false;
    ++stats_.evicted;
  }
  return true;
}

std::optional<Digest> BlockCache::next_victim(int64_t for_step) {
  for (int round = 0; round < 2; ++round) {
    if (victims_.empty()) find_victims();
    while (!victims_.empty()) {
      const auto [use, key] = victims_.back();
      victims_.pop_back();
      const auto found = entries_.find(key);
      if (found == entries_.end() || !found->second.ready) continue;
      if (found->second.pins > 0 && !planted_bug("cache_evicts_pinned")) continue;
      if (future_.next_use(key) < use) continue;  // the plan was read further meanwhile
      if (for_step != FutureUse::kNever && use <= for_step) return std::nullopt;
      return key;
    }
  }
  return std::nullopt;
}

/// The farthest few, so that not every eviction looks at all blocks.
void BlockCache::find_victims() {
  constexpr size_t kShare = 64;
  for (const auto& [key, entry] : entries_) {
    if (entry.ready && (entry.pins == 0 || planted_bug("cache_evicts_pinned")))
      victims_.emplace_back(future_.next_use(key), key);
  }
  const bool nearest_first = planted_bug("cache_evicts_nearest");
  std::sort(victims_.begin(), victims_.end(),
            [nearest_first](const auto& a, const auto& b) { return nearest_first ? b < a : a < b; });
  const size_t keep = std::max<size_t>(1, victims_.size() / kShare);
  if (victims_.size() > keep) victims_.erase(victims_.begin(), victims_.end() - static_cast<ptrdiff_t>(keep));
}

bool BlockCache::drop(const Digest& key) {
  const auto found = entries_.find(key);
  try {
    folder_.remove(key);
  } catch (const Unavailable& error) {
    note_disk_trouble(error);
    return false;
  }
  bytes_ -= found->second.bytes;
  entries_.erase(found);
  return true;
}

void BlockCache::distrust(const Digest& key) {
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end() || !found->second.ready || found->second.footer.damaged) return;
  found->second.distrusted = true;
  ++stats_.dropped;
}

bool BlockCache::has(const Digest& key) const {
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  return found != entries_.end() && found->second.ready;
}

CacheStats BlockCache::stats() const {
  std::lock_guard lock(mutex_);
  CacheStats stats = stats_;
  stats.blocks = static_cast<int64_t>(entries_.size());
  stats.bytes = bytes_;
  return stats;
}

void BlockCache::check_ledger() const {
  std::lock_guard lock(mutex_);
  int64_t sum = 0;
  for (const auto& [key, entry] : entries_) sum += entry.bytes;
  CHILIAD_CHECK_EQ(sum, bytes_);
  CHILIAD_CHECK_EQ(bytes_, folder_.bytes_on_disk());
  CHILIAD_CHECK_LE(bytes_, options_.max_bytes);
}

}  // namespace chiliad::store
