#include "tests/contract/group/ranks.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <exception>
#include <latch>
#include <numeric>
#include <thread>

#include "chiliad/base/error.h"
#include "chiliad/comm/meeting.h"
#include "chiliad/comm/nccl/nccl_group.h"

namespace chiliad::test {
namespace {

struct Listener {
  int fd = -1;  // given to rank 0's store, which closes it
  int port = 0;
};

Listener listen_on_loopback() {
  Listener listener;
  listener.fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  CHILIAD_CHECK_EQ(::bind(listener.fd, generic, size), 0);
  CHILIAD_CHECK_EQ(::listen(listener.fd, 64), 0);
  CHILIAD_CHECK_EQ(::getsockname(listener.fd, generic, &size), 0);
  listener.port = ntohs(address.sin_port);
  return listener;
}

/// Runs `body` on one thread for each rank; rethrows the exception of the lowest rank that failed.
void run_on_threads(int ranks, const std::function<void(int)>& body) {
  std::vector<std::exception_ptr> failures(static_cast<size_t>(ranks));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          body(rank);
        } catch (...) {
          failures[static_cast<size_t>(rank)] = std::current_exception();
        }
      });
    }
  }
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

comm::ConnectOptions options_of(const Backend& backend, const Listener& listener, int rank,
                                Nanoseconds timeout) {
  comm::ConnectOptions options;
  options.transport = backend.name == "shm" ? comm::Transport::kSharedMemory : comm::Transport::kGloo;
  options.rank = rank;
  options.size = backend.ranks;
  options.port = listener.port;
  options.timeout = timeout;
  if (rank == 0) options.listen_fd = listener.fd;
  return options;
}

/// The group of all ranks.
std::unique_ptr<comm::Group> meet_all(comm::Meeting& meeting) {
  std::vector<int> all(static_cast<size_t>(meeting.size()));
  std::iota(all.begin(), all.end(), 0);
  auto group = meeting.make_group({"all", std::move(all), 1 << 20, 1 << 18});
  meeting.finish();
  return group;
}

void run_in_process(int ranks, const std::function<void(comm::Group&)>& body, Nanoseconds timeout) {
  const auto meet = [&](comm::Meeting& meeting) {
    const auto group = meet_all(meeting);
    body(*group);
    group->close();
  };
  run_meetings({"inproc", ranks}, meet, timeout);
}

/// Threads of one process, each with a GPU; they meet in memory.
void run_on_gpus(const Backend& backend, const std::function<void(comm::Group&)>& body, Nanoseconds timeout,
                 int present) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  store->setTimeout(std::chrono::duration_cast<std::chrono::milliseconds>(timeout));
  comm::Membership membership{"all", std::vector<int>(static_cast<size_t>(backend.ranks)), 0};
  std::iota(membership.members.begin(), membership.members.end(), 0);
  run_on_threads(backend.ranks, [&](int rank) {
    auto own = membership;
    own.rank = rank;
    const auto group = comm::make_nccl_group(store, own, {rank, 0, timeout});
    if (rank < present) body(*group);
    group->close();
  });
}

}  // namespace

c10::Device device_of(const Backend& backend, int rank) {
  if (backend.name != "nccl") return c10::Device(c10::kCPU);
  return c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(rank));
}

void run_meetings(const Backend& backend, const std::function<void(comm::Meeting&)>& body,
                  Nanoseconds timeout) {
  if (backend.name == "inproc") {
    const auto meetings = comm::meet_in_process(backend.ranks, timeout);
    return run_on_threads(backend.ranks, [&](int rank) { body(*meetings[static_cast<size_t>(rank)]); });
  }
  const Listener listener = listen_on_loopback();
  run_on_threads(backend.ranks,
                 [&](int rank) { body(*comm::meet(options_of(backend, listener, rank, timeout))); });
}

void run_ranks(const Backend& backend, const std::function<void(comm::Group&)>& body, Nanoseconds timeout,
               int present) {
  if (backend.name == "solo") {
    const auto group = comm::make_solo_group();
    body(*group);
    group->close();
    return;
  }
  if (backend.name == "inproc") return run_in_process(backend.ranks, body, timeout);
  const int bodies = present < 0 ? backend.ranks : present;
  if (backend.name == "nccl") return run_on_gpus(backend, body, timeout, bodies);
  const Listener listener = listen_on_loopback();
  std::vector<std::unique_ptr<comm::Group>> groups(static_cast<size_t>(backend.ranks));
  std::latch connected(
      backend.ranks);  // a rank that leaves before its peers have connected is another failure
  const auto run = [&](int rank) {
    auto& group = groups[static_cast<size_t>(rank)];
    try {
      group = meet_all(*comm::meet(options_of(backend, listener, rank, timeout)));
    } catch (...) {
      connected.count_down();
      throw;
    }
    connected.arrive_and_wait();
    if (rank < bodies) body(*group);
    if (rank != 0) group->close();  // rank 0 serves the store: last
  };
  std::exception_ptr failure;
  try {
    run_on_threads(backend.ranks, run);
  } catch (...) {
    failure = std::current_exception();
  }
  for (auto& group : groups) {
    if (group != nullptr) group->close();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace chiliad::test
