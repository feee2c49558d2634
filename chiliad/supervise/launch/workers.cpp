#include "chiliad/supervise/launch/workers.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/unique_fd.h"

namespace chiliad::supervise {
namespace {

struct Rendezvous {
  UniqueFd socket;
  int port = 0;
};

Rendezvous listen_on_loopback() {
  constexpr const char* kPlace = "rendezvous";
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  constexpr int kBacklog = 1024;
  if (!socket.valid() || ::bind(socket.get(), generic, length) != 0 ||
      ::listen(socket.get(), kBacklog) != 0 || ::getsockname(socket.get(), generic, &length) != 0) {
    throw Unavailable(kPlace, fmt::format("cannot listen on 127.0.0.1: {}", std::strerror(errno)));
  }
  return {std::move(socket), ntohs(address.sin_port)};
}

ipc::SpawnOptions spawn_options(const WorkerOptions& options, int rank, const Rendezvous& rendezvous,
                                int channel_fd, int page_fd) {
  ipc::SpawnOptions spawn;
  spawn.argv = {options.program, "train",
                "--run-file",    options.run_file,
                "--run-dir",     options.run_dir,
                "--journal",     options.journal,
                "--rank",        std::to_string(rank),
                "--world",       std::to_string(options.num_ranks),
                "--channel",     std::to_string(channel_fd),
                "--progress",    std::to_string(page_fd),
                "--port",        std::to_string(rendezvous.port),
                "--parent",      std::to_string(::getpid())};
  spawn.inherit = {channel_fd, page_fd};
  spawn.ignore_interrupt = true;
  if (rank == 0) {
    spawn.argv.insert(spawn.argv.end(), {"--listen", std::to_string(rendezvous.socket.get())});
    spawn.inherit.push_back(rendezvous.socket.get());
  }
  if (!options.resume.empty()) spawn.argv.insert(spawn.argv.end(), {"--resume", options.resume});
  const std::string threads = std::to_string(options.num_threads);
  spawn.environment = {{"OMP_NUM_THREADS", threads}, {"MKL_NUM_THREADS", threads}};
  return spawn;
}

/// Whether a child's process is stopped. Takes nothing from who waits for its end.
bool is_stopped(pid_t pid) {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED | WNOHANG | WNOWAIT) != 0) return false;
  return info.si_pid == pid && info.si_code == CLD_STOPPED;
}

}  // namespace

std::string worker_program() {
  if (const char* program = std::getenv("CHILIAD_WORKER"); program != nullptr && *program != '\0')
    return program;
  std::error_code error;
  const auto own = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto beside = own.parent_path() / "chiliad-worker";
  if (error || !std::filesystem::exists(beside)) {
    throw InvalidInput(
        beside.string(),
        "the worker program is missing: this verb needs tensors. Build it (a preset with torch), or "
        "set CHILIAD_WORKER to its path");
  }
  return beside.string();
}

Position Worker::position() const {
  const auto& fields = page.fields();
  Position position;
  position.step = fields.step.load(std::memory_order_relaxed);
  const auto phase = static_cast<ipc::Phase>(fields.phase.load(std::memory_order_relaxed));
  position.phase = ipc::phase_name(phase);
  position.slot = fields.slot.load(std::memory_order_relaxed);
  position.instruction = fields.instruction.load(std::memory_order_relaxed);
  position.changed = Nanoseconds(fields.changed_ns.load(std::memory_order_relaxed));
  position.operation = page.operation();
  position.layer = fields.layer.load(std::memory_order_relaxed);
  position.program = fields.program.load(std::memory_order_relaxed);
  position.stopped = is_stopped(process.pid());
  return position;
}

std::vector<std::unique_ptr<Worker>> start_workers(const WorkerOptions& options) {
  const Rendezvous rendezvous = listen_on_loopback();
  std::vector<std::unique_ptr<Worker>> workers;
  for (int rank = 0; rank < options.num_ranks; ++rank) {
    auto [ours, theirs] = ipc::Channel::pair();
    auto page = ipc::ProgressPage::create();
    const auto spawn = spawn_options(options, rank, rendezvous, theirs.fd(), page.fd());
    workers.push_back(
        std::make_unique<Worker>(Worker{ipc::ChildProcess::spawn(spawn), std::move(ours), std::move(page)}));
  }
  return workers;
}

}  // namespace chiliad::supervise
