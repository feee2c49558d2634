#pragma once

#include <memory>
#include <string>
#include <vector>

#include "chiliad/ipc/channel.h"
#include "chiliad/ipc/child_process.h"
#include "chiliad/ipc/progress_page.h"
#include "chiliad/supervise/launch/job_machine.h"

namespace chiliad::supervise {

/// The program with tensors: CHILIAD_WORKER, else `chiliad-worker` beside this program. Throws InvalidInput
/// if there is none.
[[nodiscard]] std::string worker_program();

/// A worker process with our ends of what it shares with us.
struct Worker {
  ipc::ChildProcess process;
  ipc::Channel channel;
  ipc::ProgressPage page;

  [[nodiscard]] Position position() const;
};

struct WorkerOptions {
  std::string program;
  std::string run_dir;
  std::string run_file;
  std::string journal;
  std::string resume;  ///< checkpoint folder, or empty
  int num_ranks = 1;
  int num_threads = 1;
};

/// Starts all ranks. The rendezvous port is chosen here and its listening socket is given to rank 0, so that
/// no other process can take it in between. The calling thread must live as long as the workers do (they die
/// with it).
[[nodiscard]] std::vector<std::unique_ptr<Worker>> start_workers(const WorkerOptions& options);

}  // namespace chiliad::supervise
