#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chiliad/observe/metrics.h"
#include "tests/support/program.h"
#include "tests/support/temp_dir.h"

namespace chiliad::test {

/// A tiny data set with its run file, trained by the built programs as child processes. Each run has its own
/// directory.
class TrainJob {
 public:
  /// Pictures are written and indexed at once; a run is `steps` long.
  explicit TrainJob(int64_t steps, int64_t num_pictures = 20);

  [[nodiscard]] std::filesystem::path pictures() const { return folder_.path() / "pictures"; }
  [[nodiscard]] std::filesystem::path index() const { return folder_.path() / "index"; }
  [[nodiscard]] std::filesystem::path run_dir(const std::string& run) const { return folder_.path() / run; }

  /// Starts `chiliad train` into run_dir(run). `more` are further arguments.
  [[nodiscard]] std::unique_ptr<Program> start(const std::string& run, int nproc,
                                               const Program::Environment& environment = {},
                                               const std::vector<std::string>& more = {}) const;
  /// The same, and waits for its end.
  ProgramResult train(const std::string& run, int nproc, const Program::Environment& environment = {},
                      const std::vector<std::string>& more = {}) const;

  /// The last line of each step.
  [[nodiscard]] std::map<int64_t, observe::StepMetrics> metrics(const std::string& run) const;
  /// Digest of each step's items; later lines of a step win.
  [[nodiscard]] std::map<int64_t, std::string> ledger(const std::string& run) const;
  /// Digests of the data that was consumed, by step.
  [[nodiscard]] std::map<int64_t, std::string> consumed(const std::string& run) const;
  /// Positional digest of every tensor of the newest committed checkpoint, and its step as "step".
  [[nodiscard]] std::map<std::string, uint64_t> weights(const std::string& run) const;
  [[nodiscard]] std::vector<int64_t> committed_steps(const std::string& run) const;
  /// Processes whose command line names this run's directory.
  [[nodiscard]] std::vector<pid_t> processes(const std::string& run) const;
  /// Pid of the worker of a rank, once it runs.
  [[nodiscard]] std::optional<pid_t> worker(const std::string& run, int rank) const;

 private:
  TempDir folder_;
};

/// Empty where both runs consumed the same items in every step, else the first difference.
[[nodiscard]] std::string ledger_difference(const TrainJob& job, const std::string& want,
                                            const std::string& got);
/// Empty where both runs ended with bit-identical weights, moments and averages at the same step.
[[nodiscard]] std::string weight_difference(const TrainJob& job, const std::string& want,
                                            const std::string& got);

}  // namespace chiliad::test
