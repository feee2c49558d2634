#include <fcntl.h>
#include <unistd.h>

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <exception>
#include <optional>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/log.h"
#include "chiliad/comm/gloo/gloo_group.h"
#include "chiliad/comm/group.h"
#include "chiliad/comm/shm/shm_group.h"

namespace chiliad::comm {
namespace {

c10::intrusive_ptr<c10d::Store> open_store(const ConnectOptions& options) {
  c10d::TCPStoreOptions store;
  store.port = static_cast<uint16_t>(options.port);
  store.isServer = options.rank == 0;
  store.numWorkers = static_cast<size_t>(options.size);
  store.waitWorkers = false;
  store.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(options.timeout);
  if (options.rank == 0 && options.listen_fd >= 0) store.masterListenFd = options.listen_fd;
  return c10::make_intrusive<c10d::TCPStore>(options.host, store);
}

std::vector<uint8_t> to_bytes(const std::string& text) {
  return {text.begin(), text.end()};
}
std::string to_text(const std::vector<uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

/// Rank 0 makes the memory and tells the others where its descriptor is; nothing if this rank cannot have it.
std::optional<ipc::SharedMemory> open_shared_memory(c10d::Store& store, const ConnectOptions& options) {
  try {
    if (options.rank == 0) {
      auto memory =
          ipc::SharedMemory::create("group", shared_group_bytes(options.size, options.shared_bytes));
      store.set("shm/where", to_bytes(fmt::format("/proc/{}/fd/{}", ::getpid(), memory.fd())));
      return memory;
    }
    const std::string where = to_text(store.get("shm/where"));
    UniqueFd fd(::open(where.c_str(), O_RDWR | O_CLOEXEC));
    if (where.empty() || !fd.valid()) return std::nullopt;
    return ipc::SharedMemory::map(std::move(fd));
  } catch (const Error& error) {
    if (options.rank == 0) store.set("shm/where", std::vector<uint8_t>{});
    log_debug("no shared memory for the group: {}", error.what());
    return std::nullopt;
  }
}

/// Shared memory if every rank can have it: all ranks decide alike.
std::unique_ptr<Group> try_shared_memory(c10d::Store& store, const ConnectOptions& options) {
  if (options.size > kMaxSharedRanks) return nullptr;
  auto memory = open_shared_memory(store, options);
  store.set(fmt::format("shm/rank/{}", options.rank), to_bytes(memory.has_value() ? "yes" : "no"));
  bool all = true;
  for (int rank = 0; rank < options.size; ++rank) {
    all = to_text(store.get(fmt::format("shm/rank/{}", rank))) == "yes" && all;
  }
  // Rank 0 serves the store: it stays until everybody has read the answers.
  store.set(fmt::format("shm/read/{}", options.rank), to_bytes("yes"));
  for (int rank = 1; options.rank == 0 && rank < options.size; ++rank) {
    static_cast<void>(store.get(fmt::format("shm/read/{}", rank)));
  }
  if (!all) return nullptr;
  return make_shared_memory_group(std::move(*memory), options.rank, options.size, options.timeout);
}

}  // namespace

std::unique_ptr<Group> connect(const ConnectOptions& options) {
  if (options.size == 1) return make_solo_group();
  try {
    auto store = open_store(options);
    if (options.transport != Transport::kGloo) {
      auto group = try_shared_memory(*store, options);
      if (group != nullptr) {
        return group;
      }
      if (options.transport == Transport::kSharedMemory) {
        throw Unavailable("parallel.transport",
                          "shared memory is not to be had by every rank. Use auto or gloo");
      }
    }
    return make_gloo_group(std::move(store), options);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    const std::string text = error.what();
    throw PeerLost(fmt::format("rank {}", options.rank),
                   fmt::format("connecting failed: {}. A peer has gone or did not answer in time",
                               text.substr(0, text.find('\n'))));
  }
}

}  // namespace chiliad::comm
