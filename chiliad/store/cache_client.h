#pragma once

#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "chiliad/ipc/channel.h"
#include "chiliad/store/block.h"
#include "chiliad/store/future_use.h"

namespace chiliad::store {

/// Reads blocks of a node's cache through its owner (cache_owner.h), which may be this process; keeps those
/// used last open. Links no network library. Thread-safe.
class CacheClient {
 public:
  struct Options {
    std::filesystem::path folder;
    Nanoseconds deadline = std::chrono::seconds(330);  ///< of a read; the owner's own deadline lies within
    /// Called where nobody owns the folder: may make this process the owner. May be empty.
    std::function<void()> take_over{};
  };
  explicit CacheClient(Options options) : options_(std::move(options)) {}
  ~CacheClient();
  CacheClient(const CacheClient&) = delete;
  CacheClient& operator=(const CacheClient&) = delete;

  /// Fills `out` from `offset`, a range of the object inside the block. Returns how many bytes there were:
  /// fewer only where the object ends. Throws what the owner met, and Unavailable where there is no owner
  /// within the deadline.
  [[nodiscard]] int64_t read(const BlockSpec& spec, int64_t offset, std::span<std::byte> out);
  /// The block's bytes are wrong: the next read fetches it anew, unless the owner knows that it is so in the
  /// store.
  void distrust(const BlockSpec& spec);

 private:
  struct Connection;
  struct Held;
  [[nodiscard]] std::shared_ptr<Held> find_held(const Digest& key);
  [[nodiscard]] std::shared_ptr<Held> request(const BlockSpec& spec, const Digest& key, int64_t from,
                                              int64_t length, Nanoseconds until);
  void keep(const std::shared_ptr<Held>& held);
  [[nodiscard]] std::shared_ptr<Connection> take_connection(Nanoseconds until);
  void give_back(std::shared_ptr<Connection> connection);
  void forget_lost(const std::shared_ptr<Connection>& connection);

  const Options options_;
  std::mutex mutex_;  // guards the rest
  // Shared with what is held from them: releasing a block goes the way that it came.
  std::vector<std::shared_ptr<Connection>> idle_;
  // Shared with readers of the block, until their read is done. Used last first.
  std::list<std::shared_ptr<Held>> held_;
  int64_t held_bytes_ = 0;
  int64_t most_held_bytes_ = 0;
};

}  // namespace chiliad::store
