#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "chiliad/store/block_cache.h"
#include "chiliad/store/reliable_store.h"

namespace chiliad::store {

/// Reads blocks from the stores that they name, with retries, and holds what arrives against the checksums of
/// their parts. Thread-safe.
class BlockFetcher {
 public:
  /// `waiter` outlives it.
  BlockFetcher(StoreFactory open_store, const RetryOptions& options, Waiter& waiter)
      : open_store_(std::move(open_store)), options_(options), waiter_(waiter) {}

  /// Wrong bytes are read again: the same twice are what the store has (`damaged`), others are trouble on the
  /// way. Throws as ReliableStore.
  [[nodiscard]] FetchedBlock fetch(const BlockSpec& spec);
  /// A range, as it comes. Returns the bytes that there were, fewer only where the object ends.
  [[nodiscard]] int64_t read(const std::string& store, const std::string& object, int64_t offset,
                             std::span<std::byte> out);
  /// Over all stores.
  [[nodiscard]] RequestStats stats() const;
  /// Attempts whose bytes were wrong.
  [[nodiscard]] int64_t wrong_bytes() const { return wrong_bytes_.load(); }

 private:
  [[nodiscard]] ReliableStore& store_of(const std::string& url);

  const StoreFactory open_store_;
  const RetryOptions options_;
  Waiter& waiter_;
  mutable std::mutex mutex_;  // guards stores_
  std::map<std::string, std::unique_ptr<ReliableStore>> stores_;
  std::atomic<int64_t> wrong_bytes_{0};
};

}  // namespace chiliad::store
