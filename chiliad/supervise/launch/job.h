#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <string>

#include "chiliad/base/clock.h"
#include "chiliad/observe/terminal_progress.h"
#include "chiliad/spec/run_file.h"

namespace chiliad::supervise {

struct JobOptions {
  spec::RunFile file;
  std::filesystem::path run_dir;
  std::string worker;         ///< program, see worker_program()
  std::string data;           ///< identity of the data set (the index manifest's digest); empty: not checked
  bool from_scratch = false;  ///< set an earlier run aside instead of resuming
  observe::ProgressStyle progress = observe::ProgressStyle::kLines;
  std::ostream* progress_out = nullptr;  ///< null: nothing is shown
  /// Told before workers start where the job goes on, and then, often, the step that all ranks have reached.
  std::function<void(int64_t step)> on_step{};
};

/// How a job ended.
struct JobReport {
  int exit_code = 0;
  std::string reason;         ///< done, stopped, killed, failed, finished (it was already)
  std::string message;        ///< what went wrong; empty where nothing did
  int64_t step = 0;           ///< reached
  int64_t steps = 0;          ///< of the run
  int64_t resumed_from = -1;  ///< step, -1: it began at the beginning
  double seconds = 0.0;
  std::string run_dir;
  std::string last_checkpoint;  ///< committed; empty: none
  std::string incident;         ///< page about a failure; empty: none

  [[nodiscard]] std::string to_json() const;
  /// One line for people.
  [[nodiscard]] std::string to_string() const;
};

/// Trains, or resumes from the newest good checkpoint of the run directory, with one worker a rank on this
/// machine:
/// 1. take the run directory, find where to start, write the resolved run.yaml
/// 2. start the workers
/// 3. serve them until the last one is gone: metrics, logs, journal, snapshots -> committed checkpoints
/// 4. after a failure seal the newest complete snapshot and write an incident page.
/// SIGINT or SIGTERM: all save and leave; a second one kills them. Call it on the main thread, before other
/// threads start. Failures of workers are in the report; throws for what can be said before they start
/// (docs/exit-codes.md).
[[nodiscard]] JobReport run_job(const JobOptions& options, const Clock& clock);

}  // namespace chiliad::supervise
