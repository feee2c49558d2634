#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chiliad/base/clock.h"
#include "chiliad/base/log.h"
#include "chiliad/checkpoint/snapshot.h"
#include "chiliad/observe/jsonl_writer.h"
#include "chiliad/observe/sample_folder.h"
#include "chiliad/observe/tensorboard_writer.h"
#include "chiliad/observe/terminal_progress.h"
#include "chiliad/supervise/launch/incident.h"
#include "chiliad/supervise/launch/job_machine.h"
#include "chiliad/supervise/launch/persister.h"
#include "chiliad/supervise/launch/run_directory.h"
#include "chiliad/supervise/launch/signal_watch.h"
#include "chiliad/supervise/launch/workers.h"

namespace chiliad::supervise {

struct LoopOptions {
  MachineOptions machine;
  Persister::Options persister;
  int64_t first_step = 0;
  int64_t num_steps = 0;
  bool tensorboard = true;  ///< write its event files
  observe::ProgressStyle progress = observe::ProgressStyle::kLines;
  std::ostream* progress_out = nullptr;
  std::function<void(int64_t step)> on_step{};  ///< may be empty; told the step that all ranks have reached
};

/// Serves running workers: turns what the kernel tells into events of the JobMachine and carries out its
/// actions.
class JobLoop {
 public:
  /// `signals` and `clock` outlive it.
  JobLoop(LoopOptions options, const RunDirectory& directory, std::vector<std::unique_ptr<Worker>> workers,
          SignalWatch& signals, const Clock& clock);

  /// Until the last worker is gone and every snapshot is dealt with.
  void run();

  [[nodiscard]] JobMachine::Outcome outcome() const { return machine_.outcome(); }
  [[nodiscard]] int64_t last_committed() const { return machine_.last_committed(); }
  [[nodiscard]] const std::string& last_checkpoint() const { return last_checkpoint_; }
  [[nodiscard]] int64_t last_step() const { return last_step_; }
  [[nodiscard]] int64_t sealed() const { return sealed_; }
  [[nodiscard]] std::vector<Position> last_positions() const;

 private:
  void wait_and_serve();
  void serve_channel(int rank);
  void serve_exit(int rank);
  void serve_results();
  void tick();
  void on_frame(int rank, ipc::Frame frame);
  void on_ring(int rank, ipc::Frame frame);
  void on_metrics(const std::string& body);
  /// New ones of samples/, for TensorBoard.
  void show_samples();
  void on_ledger(const std::string& body);
  void on_journal(int rank, const std::string& body);
  void carry_out(const JobMachine::Actions& actions);
  void persist(const SnapshotSet& snapshot);
  void send(int rank, ipc::FrameType type, const std::string& body);
  /// The newest snapshot that all ranks have in memory and no checkpoint holds.
  [[nodiscard]] std::optional<SnapshotSet> left_to_save() const;
  void save(const SnapshotSet& snapshot);
  void seal_what_is_left();
  /// After a run that did not fail: tries again what could not be written, until the deadline of checkpoints.
  void save_again();
  template <typename... Args>
  void say(LogLevel level, fmt::format_string<Args...> format, Args&&... args);

  LoopOptions options_;
  RunDirectory directory_;
  SignalWatch& signals_;
  const Clock& clock_;
  JobMachine machine_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<checkpoint::SnapshotRing>> rings_;  // [rank]; null until the worker sent it
  std::vector<bool> open_;  // [rank]: its channel can still say something
  std::vector<bool> exited_;
  observe::JsonlWriter metrics_;
  std::optional<observe::JsonlWriter> ledger_;  // opened by its first line
  std::optional<observe::TensorBoardWriter> tensorboard_;
  observe::SampleWatch samples_;
  std::optional<observe::TerminalProgress> progress_;
  std::string progress_detail_;
  int64_t last_step_ = 0;
  int64_t sealed_ = -1;
  std::string last_checkpoint_;
  Persister persister_;  // last: its thread reads the rings
};

}  // namespace chiliad::supervise
