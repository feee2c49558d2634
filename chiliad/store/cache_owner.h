#pragma once

#include <filesystem>
#include <memory>

#include "chiliad/store/block_cache.h"
#include "chiliad/store/block_fetcher.h"
#include "chiliad/store/future_use.h"

namespace chiliad::store {

struct CacheOptions {
  std::filesystem::path folder;  ///< on a disk of this machine
  int64_t max_bytes = int64_t{64} << 30;
  int num_readers = 1;  ///< processes that will read, which share a quarter of the bytes to hold blocks open
  int prefetchers = 4;  ///< threads that fetch ahead
  RetryOptions retry{};
};

/// The block cache of a node and its one owner: fetches, keeps, and serves every process of this user on this
/// machine through a socket in the folder (cache_client.h), until it is closed. What is known of the future
/// is told to `plan_ahead`. Its threads take no signals.
class CacheOwner {
 public:
  /// Throws Unavailable where another process owns the folder, InvalidInput where the folder is no cache and
  /// not empty.
  CacheOwner(const CacheOptions& options, StoreFactory open_store);
  ~CacheOwner();
  CacheOwner(const CacheOwner&) = delete;
  CacheOwner& operator=(const CacheOwner&) = delete;

  /// Blocks that a step uses, in the order in which they should be fetched; nothing past the last step.
  using StepBlocks = std::function<std::optional<std::vector<BlockSpec>>(int64_t step)>;
  /// Reads `blocks_of` from `first_step` on, by a thread of its own, as far ahead as the cache can hold, and
  /// fetches ahead. Replaces an earlier plan. What `blocks_of` throws ends the looking ahead, with a warning.
  void plan_ahead(int64_t first_step, StepBlocks blocks_of);
  /// Steps before `step` are over. Cheap; may be called often.
  void reached(int64_t step);

  [[nodiscard]] CacheStats stats() const;
  [[nodiscard]] RequestStats requests() const;
  [[nodiscard]] BlockCache& cache();
  /// Ends what runs, refuses readers, joins. The folder is free for another owner only when this is gone.
  void close();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace chiliad::store
