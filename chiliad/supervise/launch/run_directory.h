#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "chiliad/checkpoint/reader.h"
#include "chiliad/io/file.h"
#include "chiliad/spec/run_file.h"

namespace chiliad::supervise {

/// The files of a run. docs/formats/run_directory.md.
class RunDirectory {
 public:
  explicit RunDirectory(std::filesystem::path path) : path_(std::move(path)) {}

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::filesystem::path lock() const { return path_ / "lock"; }
  [[nodiscard]] std::filesystem::path run_file() const { return path_ / "run.yaml"; }
  [[nodiscard]] std::filesystem::path log() const { return path_ / "log.jsonl"; }
  [[nodiscard]] std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
  [[nodiscard]] std::filesystem::path ledger() const { return path_ / "ledger.jsonl"; }
  [[nodiscard]] std::filesystem::path journal() const { return path_ / "journal.jsonl"; }
  [[nodiscard]] std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  [[nodiscard]] std::filesystem::path incidents() const { return path_ / "incidents"; }
  [[nodiscard]] std::filesystem::path tensorboard() const { return path_ / "tensorboard"; }
  [[nodiscard]] std::filesystem::path trace() const { return path_ / "trace"; }
  [[nodiscard]] std::filesystem::path samples() const { return path_ / "samples"; }

  /// Makes the directory and takes it for this process. Throws InvalidInput naming pid and host of the job
  /// that has it.
  [[nodiscard]] io::FileLock take() const;

 private:
  std::filesystem::path path_;
};

/// Where a job starts.
struct StartPoint {
  std::string checkpoint;  ///< folder to resume from; empty: from the beginning
  int64_t step = 0;
  bool finished = false;  ///< nothing is left to do
};

/// Decides whether to resume and checks that `file` may go on from there. Damaged checkpoints are named in a
/// warning and, where an older good one is used, moved to damaged/, so that they neither count as kept nor
/// are tried again. from_scratch sets everything of the earlier run aside first. Throws CorruptData where no
/// checkpoint is good, InvalidInput where a setting differs that a resume may not change.
/// `data`: identity of the data set as it is now; empty: not checked here.
[[nodiscard]] StartPoint find_start(const RunDirectory& directory, const spec::RunFile& file,
                                    bool from_scratch, const std::string& data = "");

/// Throws InvalidInput if a run with these settings and this data may not go on from the checkpoint.
void check_resumable(const checkpoint::Checkpoint& good, const spec::RunFile& file,
                     const std::string& run_dir, const std::string& data);

/// Throws InvalidInput with old and new value of each setting that a resume may not change.
void check_same_run(const std::vector<spec::Difference>& differences, const std::string& run_dir);

/// Makes journal.jsonl fit for this start: a torn last line (never acknowledged, so never used) is cut off,
/// and the journal of an earlier attempt with other content is dropped where the run starts from the
/// beginning.
void prepare_journal(const RunDirectory& directory, const StartPoint& start, const spec::RunFile& file);

}  // namespace chiliad::supervise
