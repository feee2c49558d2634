#pragma once

#include <atomic>
#include <filesystem>
#include <list>
#include <map>
#include <mutex>
#include <thread>

#include "chiliad/base/unique_fd.h"
#include "chiliad/ipc/channel.h"
#include "chiliad/store/block_cache.h"
#include "chiliad/store/block_fetcher.h"
#include "chiliad/store/waiter.h"

namespace chiliad::store::detail {

/// Answers readers on the folder's socket, one thread a connection.
class CacheServer {
 public:
  /// All outlive it.
  CacheServer(const std::filesystem::path& folder, BlockCache& cache, BlockFetcher& fetcher, Waiter& waiter,
              int64_t held_bytes);
  ~CacheServer() { close(); }
  /// After waiter.stop(): ends all connections and joins.
  void close();

 private:
  struct Connection {
    explicit Connection(UniqueFd socket) : channel(std::move(socket)) {}
    ipc::Channel channel;
    std::thread thread{};
    std::atomic<bool> done{false};
  };
  void accept_readers();
  void join_finished(bool all);
  void serve(Connection& connection);
  struct Leases {
    int64_t next = 1;
    std::map<int64_t, BlockCache::Lease> by_number{};
  };
  static void release(Leases& leases, const std::string& number);
  void answer(ipc::Channel& channel, const std::string& body, Leases& leases);

  BlockCache& cache_;
  BlockFetcher& fetcher_;
  Waiter& waiter_;
  const int64_t held_bytes_;
  UniqueFd socket_;
  std::list<Connection> connections_;  // of the accepting thread
  std::thread accepting_;
};

}  // namespace chiliad::store::detail
