#include "chiliad/store/cache_owner.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <set>
#include <thread>
#include <unordered_set>

#include "chiliad/base/log.h"
#include "chiliad/store/detail/cache_server.h"
#include "chiliad/store/detail/quiet_thread.h"

namespace chiliad::store {
namespace {

/// Plans are read until so many times the cache is known.
constexpr int64_t kKnownCaches = 2;
/// And not further than so many steps: a set that fits as a whole is known soon.
constexpr int64_t kMostSteps = 8192;
/// A block that is not used for so many steps may have been dropped meanwhile.
constexpr int64_t kApart = 8;
constexpr Nanoseconds kLookUp = std::chrono::milliseconds(50);

const CacheOptions& checked(const CacheOptions& options) {
  CHILIAD_CHECK_GT(options.max_bytes, 0);
  CHILIAD_CHECK_GT(options.num_readers, 0);
  return options;
}

}  // namespace

class CacheOwner::Impl {
 public:
  Impl(const CacheOptions& options, StoreFactory open_store)
      : options_(checked(options)),
        folder_(options.folder),
        fetcher_(std::move(open_store), options.retry, waiter_),
        cache_(
            folder_, future_, [this](const BlockSpec& spec) { return fetcher_.fetch(spec); },
            {options.max_bytes, std::chrono::seconds(60)}, clock_),
        server_(options.folder, cache_, fetcher_, waiter_, options.max_bytes / (4 * options.num_readers)) {}
  ~Impl() { close(); }

  void plan_ahead(int64_t first_step, StepBlocks blocks_of);
  void reached(int64_t step);
  void close();

  const CacheOptions options_;
  const SystemClock clock_;
  Waiter waiter_;
  BlockFolder folder_;
  FutureUse future_;
  BlockFetcher fetcher_;
  BlockCache cache_;
  detail::CacheServer server_;

 private:
  struct Ahead {
    int64_t step = 0;
    Digest key{};
    BlockSpec spec{};
  };
  void read_plan(int64_t first_step, const StepBlocks& blocks_of);
  void add_step(int64_t step, std::vector<BlockSpec> blocks);
  void fetch_ahead();
  [[nodiscard]] std::optional<Ahead> next_to_fetch();
  [[nodiscard]] bool fetch(const BlockSpec& spec);
  void stop_planning();
  [[nodiscard]] bool stopping() const { return waiter_.stopped() || replan_; }

  std::atomic<bool> replan_{false};
  std::mutex mutex_;  // guards the rest but the threads
  std::condition_variable changed_;
  std::deque<Ahead> to_fetch_;                     // by step; a block again where its uses lie apart
  std::unordered_set<Digest, DigestHash> failed_;  // left to who needs them
  // Of the blocks known: last step of each, and their bytes that the future holds.
  std::unordered_map<Digest, std::pair<int64_t, int64_t>, DigestHash> known_;
  std::set<std::pair<int64_t, Digest>> known_until_;  // each once, with a step not after its last
  int64_t known_bytes_ = 0;
  int64_t now_ = 0;

  std::thread planner_;
  std::vector<std::thread> prefetchers_;
};

void CacheOwner::Impl::plan_ahead(int64_t first_step, StepBlocks blocks_of) {
  stop_planning();
  future_.clear();
  future_.reached(first_step);
  now_ = first_step;
  planner_ = detail::quiet_thread(
      [this, first_step, blocks = std::move(blocks_of)] { read_plan(first_step, blocks); });
  for (int i = 0; i < options_.prefetchers; ++i)
    prefetchers_.push_back(detail::quiet_thread([this] { fetch_ahead(); }));
}

void CacheOwner::Impl::stop_planning() {
  {
    std::lock_guard lock(mutex_);
    replan_ = true;
    changed_.notify_all();
  }
  if (planner_.joinable()) planner_.join();
  for (std::thread& thread : prefetchers_) thread.join();
  prefetchers_.clear();
  to_fetch_.clear();
  failed_.clear();
  known_.clear();
  known_until_.clear();
  known_bytes_ = 0;
  replan_ = false;
}

void CacheOwner::Impl::read_plan(int64_t first_step, const StepBlocks& blocks_of) {
  try {
    for (int64_t step = first_step; !stopping(); ++step) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] {
          return stopping() || (known_bytes_ < kKnownCaches * options_.max_bytes && step - now_ < kMostSteps);
        });
      }
      if (stopping()) return;
      auto blocks = blocks_of(step);
      if (!blocks.has_value()) return;
      add_step(step, *std::move(blocks));
    }
  } catch (const std::exception& error) {
    log_warn("block cache: no more is fetched ahead: {}", error.what());
  }
}

void CacheOwner::Impl::add_step(int64_t step, std::vector<BlockSpec> blocks) {
  std::vector<Digest> keys;
  std::unordered_set<Digest, DigestHash> seen;
  std::lock_guard lock(mutex_);
  for (BlockSpec& spec : blocks) {
    const Digest key = spec.key();
    if (!seen.insert(key).second) continue;
    keys.push_back(key);
    auto [at, is_new] = known_.try_emplace(key, step, spec.length);
    if (is_new) {
      known_bytes_ += spec.length;
      known_until_.emplace(step, key);
    }
    const bool again = step - at->second.first > kApart;
    at->second.first = step;
    if (is_new || again) to_fetch_.push_back({step, key, std::move(spec)});
  }
  future_.append(step, keys);
  changed_.notify_all();
}

void CacheOwner::Impl::reached(int64_t step) {
  std::lock_guard lock(mutex_);
  if (step <= now_) return;
  now_ = step;
  future_.reached(step);
  while (!known_until_.empty() && known_until_.begin()->first < step) {
    const auto found = known_.find(known_until_.begin()->second);
    known_until_.erase(known_until_.begin());
    if (found->second.first < step) {
      known_bytes_ -= found->second.second;
      known_.erase(found);
    } else {
      known_until_.emplace(found->second.first, found->first);  // used again since
    }
  }
  changed_.notify_all();
}

/// The next block that is not there and that nobody fetches, with room made for it; nothing where there is
/// none, before what is used first is over. Blocks that are there stay in the list: they may be dropped
/// before they are used.
std::optional<CacheOwner::Impl::Ahead> CacheOwner::Impl::next_to_fetch() {
  while (!to_fetch_.empty() && to_fetch_.front().step < now_) to_fetch_.pop_front();
  for (const Ahead& ahead : to_fetch_) {
    if (failed_.contains(ahead.key)) continue;
    const BlockCache::Room room = cache_.make_room_ahead(ahead.spec);
    if (room == BlockCache::Room::kMade) return ahead;
    if (room == BlockCache::Room::kNone) break;
  }
  return std::nullopt;
}

void CacheOwner::Impl::fetch_ahead() {
  while (!stopping()) {
    std::unique_lock lock(mutex_);
    const std::optional<Ahead> next = next_to_fetch();
    if (!next.has_value()) {
      if (!stopping()) changed_.wait_for(lock, kLookUp);
      continue;
    }
    lock.unlock();
    const bool there = fetch(next->spec);
    lock.lock();
    if (!there) failed_.insert(next->key);
  }
}

bool CacheOwner::Impl::fetch(const BlockSpec& spec) {
  try {
    cache_.fetch_ahead(spec);
    return true;
  } catch (const Error& error) {
    // Who needs the block meets the same trouble and reports it.
    if (!stopping()) log_warn("block cache: fetching ahead: {}", error.what());
    return false;
  }
}

void CacheOwner::Impl::close() {
  waiter_.stop();
  stop_planning();
  server_.close();
}

CacheOwner::CacheOwner(const CacheOptions& options, StoreFactory open_store)
    : impl_(std::make_unique<Impl>(options, std::move(open_store))) {}
CacheOwner::~CacheOwner() = default;

void CacheOwner::plan_ahead(int64_t first_step, StepBlocks blocks_of) {
  impl_->plan_ahead(first_step, std::move(blocks_of));
}
void CacheOwner::reached(int64_t step) {
  impl_->reached(step);
}
CacheStats CacheOwner::stats() const {
  return impl_->cache_.stats();
}
RequestStats CacheOwner::requests() const {
  return impl_->fetcher_.stats();
}
BlockCache& CacheOwner::cache() {
  return impl_->cache_;
}
void CacheOwner::close() {
  impl_->close();
}

}  // namespace chiliad::store
