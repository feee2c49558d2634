#include <fcntl.h>
#include <unistd.h>

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/log.h"
#include "chiliad/comm/gloo/gloo_group.h"
#include "chiliad/comm/meeting.h"
#include "chiliad/comm/membership.h"
#include "chiliad/comm/nccl/nccl_group.h"
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

[[noreturn]] void connecting_failed(int rank, const std::exception& error) {
  const std::string text = error.what();
  throw PeerLost(fmt::format("rank {}", rank),
                 fmt::format("connecting failed: {}. A peer has gone or did not answer in time",
                             text.substr(0, text.find('\n'))));
}

class StoreMeeting final : public Meeting {
 public:
  explicit StoreMeeting(const ConnectOptions& options) : options_(options), store_(open_store(options)) {}

  [[nodiscard]] int rank() const override { return options_.rank; }
  [[nodiscard]] int size() const override { return options_.size; }

  std::unique_ptr<Group> make_group(const GroupRequest& request) override {
    const Membership membership = membership_of(request, options_.rank);
    if (membership.size() == 1) return make_solo_group();
    return guarded([&]() -> std::unique_ptr<Group> {
      if (request.gpu >= 0) {
        return make_nccl_group(store_, membership, {request.gpu, request.channels, options_.timeout});
      }
      if (options_.transport != Transport::kGloo) {
        auto group = try_shared_memory(request, membership);
        if (group != nullptr) return group;
        if (options_.transport == Transport::kSharedMemory) {
          throw Unavailable("parallel.transport",
                            "shared memory is not to be had by every rank. Use auto or gloo");
        }
      }
      const std::string& own = options_.own_host.empty() ? options_.host : options_.own_host;
      return make_gloo_group(store_, membership, {own, options_.timeout});
    });
  }

  /// Rank 0 serves the store: it stays until everybody has said that they need it no more.
  void finish() override {
    guarded([&] {
      store_->set("finished/" + std::to_string(rank()), to_bytes("yes"));
      for (int peer = 1; rank() == 0 && peer < size(); ++peer)
        static_cast<void>(store_->get("finished/" + std::to_string(peer)));
      store_.reset();
    });
  }

 private:
  template <typename Call>
  auto guarded(Call call) -> decltype(call()) {
    try {
      return call();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      connecting_failed(rank(), error);
    }
  }

  /// The first member makes the memory and tells the others where its descriptor is; nothing if this rank
  /// cannot have it.
  std::optional<ipc::SharedMemory> open_shared_memory(const GroupRequest& request,
                                                      const Membership& membership) {
    const std::string where_key = request.name + "/where";
    try {
      if (membership.rank == 0) {
        auto memory = ipc::SharedMemory::create("group", shared_group_bytes(membership.size(), request));
        store_->set(where_key, to_bytes(fmt::format("/proc/{}/fd/{}", ::getpid(), memory.fd())));
        return memory;
      }
      const std::string where = to_text(store_->get(where_key));
      UniqueFd fd(::open(where.c_str(), O_RDWR | O_CLOEXEC));
      if (where.empty() || !fd.valid()) return std::nullopt;
      return ipc::SharedMemory::map(std::move(fd));
    } catch (const Error& error) {
      if (membership.rank == 0) store_->set(where_key, std::vector<uint8_t>{});
      log_debug("no shared memory for group {}: {}", request.name, error.what());
      return std::nullopt;
    }
  }

  /// Shared memory if every member can have it: all decide alike.
  std::unique_ptr<Group> try_shared_memory(const GroupRequest& request, const Membership& membership) {
    if (membership.size() > kMaxSharedRanks) return nullptr;
    auto memory = open_shared_memory(request, membership);
    const auto key = [&](int rank) { return fmt::format("{}/rank/{}", request.name, rank); };
    store_->set(key(membership.rank), to_bytes(memory.has_value() ? "yes" : "no"));
    bool all = true;
    for (int rank = 0; rank < membership.size(); ++rank) {
      all = to_text(store_->get(key(rank))) == "yes" && all;
    }
    if (!all) return nullptr;
    return make_shared_memory_group(std::make_shared<const ipc::SharedMemory>(std::move(*memory)), membership,
                                    request.kept_bytes, options_.timeout);
  }

  ConnectOptions options_;
  c10::intrusive_ptr<c10d::Store> store_;
};

/// One rank: there is nobody to meet.
class SoloMeeting final : public Meeting {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return 1; }
  std::unique_ptr<Group> make_group(const GroupRequest&) override { return make_solo_group(); }
  void finish() override {}
};

}  // namespace

std::unique_ptr<Meeting> meet(const ConnectOptions& options) {
  if (options.size == 1) return std::make_unique<SoloMeeting>();
  try {
    return std::make_unique<StoreMeeting>(options);
  } catch (const std::exception& error) {
    connecting_failed(options.rank, error);
  }
}

}  // namespace chiliad::comm
