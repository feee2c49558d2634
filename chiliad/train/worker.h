#pragma once

#include <string>

namespace chiliad::train {

/// Command line of `chiliad-worker train`, as supervise/launch gives it.
struct WorkerArguments {
  std::string run_file;
  std::string run_dir;
  std::string journal;  ///< path of journal.jsonl
  std::string resume;   ///< checkpoint folder; empty: from the beginning
  int rank = 0;
  int world = 1;
  int channel = -1;
  int progress = -1;
  int port = 0;
  int listen = -1;
  int parent = 0;
};

/// Trains until the run's last step or until the parent asks to stop. Errors are sent to the parent. returns:
/// exit code.
int run_worker(const WorkerArguments& arguments);

}  // namespace chiliad::train
