#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "chiliad/base/clock.h"
#include "chiliad/base/error.h"
#include "chiliad/supervise/launch/stall.h"

namespace chiliad::supervise {

/// How a worker ended.
struct WorkerExit {
  int code = 0;
  int signal = 0;
  std::string text;  ///< "exit code 3", "signal 9 (Killed)"
};

/// What a worker says of its own failure.
struct WorkerError {
  ErrorKind kind = ErrorKind::kInternal;
  std::string message;  ///< "place: what"
  int64_t step = 0;
  std::vector<int> ranks;  ///< that the error is about: waited for in vain, or other than the rest
};

/// A snapshot that every rank holds: which slot of each rank's ring.
struct SnapshotSet {
  int64_t step = 0;
  std::vector<int> slots;  ///< [rank]
};

/// What is to be done next; carried out by the job in this order.
struct Action {
  enum class Kind { kStop, kTerminate, kKill, kPersist, kWarn };
  Kind kind = Kind::kWarn;
  int rank = -1;         ///< kStop, kTerminate, kKill
  SnapshotSet snapshot;  ///< kPersist
  std::string text;      ///< kWarn
};

struct MachineOptions {
  int num_ranks = 1;
  Nanoseconds hang_timeout = std::chrono::seconds(300);
  Nanoseconds peer_grace = std::chrono::seconds(1);  ///< from the first failure to SIGKILL of the others
  Nanoseconds checkpoint_timeout = std::chrono::seconds(120);
};

/// The decisions of a job as a state machine: told what happened, it says what to do. No processes, no clock
/// of its own.
/// 1. running: snapshots that all ranks hold are persisted; one signal asks all to save and leave
/// 2. failing: a worker died, reported an error or hung; the others are terminated, and killed after
/// peer_grace, for they
///    may wait for the lost one in a collective
/// 3. ended: every worker is gone; the job seals what snapshots are left, waits for the writer, and reports
/// `outcome`.
class JobMachine {
 public:
  JobMachine(MachineOptions options, Nanoseconds now);

  using Actions = std::vector<Action>;
  Actions on_snapshot(int rank, int64_t step, int slot, Nanoseconds now);
  void on_finished(int rank, int64_t step, const std::string& reason);
  /// A lost peer is explained by where all ranks are.
  Actions on_error(int rank, WorkerError error, const std::vector<Position>& positions, Nanoseconds now);
  Actions on_exit(int rank, WorkerExit exit, const Position& last, Nanoseconds now);
  /// The channel of a live worker is broken: it closed it or sent what is no frame.
  Actions on_channel_lost(int rank, const std::string& why, const Position& last, Nanoseconds now);
  /// Something of the job itself failed (the journal cannot be made durable).
  Actions on_job_error(ErrorKind kind, const std::string& message, Nanoseconds now);
  Actions on_signal(Nanoseconds now);
  /// The writer is done with a snapshot. `problem` is empty where it is committed.
  void on_persisted(int64_t step, const std::string& problem);
  /// Looks at deadlines; call it at least a few times a second.
  Actions on_tick(const std::vector<Position>& positions, Nanoseconds now);

  [[nodiscard]] bool all_exited() const { return num_exited_ == options_.num_ranks; }
  /// A second signal came: nobody wants to wait any more.
  [[nodiscard]] bool killed_by_user() const { return num_signals_ >= 2; }
  [[nodiscard]] bool persisting() const { return !persisting_.empty(); }
  [[nodiscard]] bool failing() const { return !failures_.empty(); }
  /// -1: none in this run.
  [[nodiscard]] int64_t last_committed() const { return last_committed_; }

  struct Outcome {
    int exit_code = 0;
    int64_t step = 0;           ///< reached
    std::string message;        ///< of the failure or of the end
    std::string reason;         ///< done, stopped, killed, failed
    int rank = -1;              ///< who failed first, or whom it waited for, or -1
    std::vector<int> suspects;  ///< ranks to look at first
  };
  /// Once all workers are gone.
  [[nodiscard]] Outcome outcome() const;

 private:
  struct Rank {
    bool exited = false;
    bool finished = false;
    bool ended_by_us = false;  // terminated or killed: its death says nothing
    int64_t finished_step = 0;
    std::string reason;
    std::optional<WorkerError> error;
  };
  struct Failure {
    int rank;
    int code;
    bool secondary;  // a lost peer: most likely the consequence of another failure
    std::string text;
    std::vector<int> suspects = {};  // empty: the rank itself
  };
  struct Pending {
    std::map<int, int> slots;  // rank -> slot
    Nanoseconds since{0};
    bool warned = false;
  };

  Actions fail(Failure failure, Nanoseconds now);
  [[nodiscard]] Actions check_hang(const std::vector<Position>& positions, Nanoseconds now);
  void warn_late_checkpoints(Nanoseconds now, Actions& actions);

  MachineOptions options_;
  std::vector<Rank> ranks_;
  Nanoseconds started_;
  int num_exited_ = 0;
  int num_signals_ = 0;
  std::map<int64_t, Pending> pending_;         // snapshots that some ranks hold
  std::map<int64_t, Nanoseconds> persisting_;  // step -> since when
  int64_t last_committed_ = -1;
  int64_t failed_checkpoint_ = -1;
  std::string checkpoint_problem_;
  std::vector<Failure> failures_;
  Nanoseconds kill_at_{0};
  bool killed_ = false;
};

/// The newest step of which every rank's ring holds a complete snapshot, if it is newer than
/// `last_committed`. complete_steps: [rank][slot], -1 for an incomplete slot.
[[nodiscard]] std::optional<SnapshotSet> sealable(const std::vector<std::vector<int64_t>>& complete_steps,
                                                  int64_t last_committed);

}  // namespace chiliad::supervise
