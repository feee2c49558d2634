#include "tests/contract/group/ranks.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <exception>
#include <numeric>
#include <thread>

#include "chiliad/base/error.h"
#include "chiliad/comm/meeting.h"

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

void run_threads(int ranks, const std::function<void(comm::Group&)>& body, Nanoseconds timeout) {
  const auto meetings = comm::meet_in_process(ranks, timeout);
  std::vector<int> all(static_cast<size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::exception_ptr> failures(static_cast<size_t>(ranks));
  {
    std::vector<std::jthread> threads;
    for (size_t rank = 0; rank < meetings.size(); ++rank) {
      threads.emplace_back([&, rank] {
        try {
          const auto group = meetings[rank]->make_group({"all", all, 1 << 20});
          meetings[rank]->finish();
          body(*group);
          group->close();
        } catch (...) {
          failures[rank] = std::current_exception();
        }
      });
    }
  }
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace

void run_ranks(const Backend& backend, const std::function<void(comm::Group&)>& body, Nanoseconds timeout,
               int present) {
  if (backend.name == "solo") {
    const auto group = comm::make_solo_group();
    body(*group);
    group->close();
    return;
  }
  if (backend.name == "inproc") return run_threads(backend.ranks, body, timeout);
  const Listener listener = listen_on_loopback();
  const int bodies = present < 0 ? backend.ranks : present;
  std::vector<std::exception_ptr> failures(static_cast<size_t>(backend.ranks));
  std::vector<std::unique_ptr<comm::Group>> groups(static_cast<size_t>(backend.ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < backend.ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto slot = static_cast<size_t>(rank);
      try {
        comm::ConnectOptions options;
        options.transport = backend.name == "shm" ? comm::Transport::kSharedMemory : comm::Transport::kGloo;
        options.shared_bytes = 1 << 20;
        options.rank = rank;
        options.size = backend.ranks;
        options.port = listener.port;
        options.timeout = timeout;
        if (rank == 0) options.listen_fd = listener.fd;
        groups[slot] = comm::connect(options);
        if (rank < bodies) body(*groups[slot]);
        if (rank != 0) groups[slot]->close();  // rank 0 serves the store: last
      } catch (...) {
        failures[slot] = std::current_exception();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (auto& group : groups) {
    if (group != nullptr) group->close();
  }
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace chiliad::test
