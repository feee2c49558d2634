#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "chiliad/checkpoint/reader.h"
#include "chiliad/observe/metrics.h"
#include "chiliad/observe/sample_folder.h"
#include "chiliad/spec/run_file.h"
#include "chiliad/stepplan/journal.h"

namespace chiliad::report {

/// Where the files of a run lie (docs/formats/run_directory.md).
struct RunPaths {
  std::filesystem::path folder;
  std::filesystem::path lock;
  std::filesystem::path run_file;
  std::filesystem::path log;
  std::filesystem::path metrics;
  std::filesystem::path journal;
  std::filesystem::path checkpoints;
  std::filesystem::path incidents;
  std::filesystem::path samples;
};

/// A line of log.jsonl.
struct LogEntry {
  std::string time;
  std::string level;
  std::string message;
};

/// A page of incidents/.
struct IncidentEntry {
  std::string file;
  std::string time;
  std::string message;
  std::string where;  ///< of each rank, for people
  int64_t last_committed = -1;
  int64_t sealed = -1;
};

struct CheckpointEntry {
  checkpoint::Listing listing;
  int64_t num_bytes = 0;
  int num_ranks = 0;
};

/// What a run directory holds. Each part stands for itself: what is missing or damaged is a line in
/// `problems`, for a run may be going on, killed, or about to begin.
struct RunData {
  std::string folder;
  std::string owner;  ///< of the job that has the directory now; empty: none has
  std::string run_file_text;
  std::optional<spec::RunFile> run_file;
  std::vector<observe::StepMetrics> metrics;  ///< ascending steps: of those that came again the last ones
  std::vector<int64_t> resumes;               ///< steps at which the run went on
  std::vector<LogEntry> warnings;             ///< the last of them, errors too
  int64_t num_warnings = 0;
  std::vector<IncidentEntry> incidents;  ///< oldest first
  std::vector<CheckpointEntry> checkpoints;
  stepplan::Journal journal;
  std::vector<observe::SampleFile> samples;  ///< ascending steps
  std::vector<std::string> problems;

  [[nodiscard]] int64_t step() const;   ///< reached, as far as the files say
  [[nodiscard]] int64_t steps() const;  ///< of the run; 0: not known
  /// "running", "finished", "stopped" or "nothing written yet".
  [[nodiscard]] std::string state() const;
};

/// Reads it while others may write. Throws InvalidInput if the folder is no run directory.
[[nodiscard]] RunData read_run(const RunPaths& paths);

}  // namespace chiliad::report
