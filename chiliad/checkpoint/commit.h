#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>

#include "chiliad/checkpoint/snapshot.h"

namespace chiliad::checkpoint {

/// Writes one checkpoint, step-N.gG/. Protocol:
/// 1. choose a generation G that no folder of this step has (names are never reused) and make the folder
/// 2. each rank's boxes: {model,optim,ema}/rank-RRRRR.safetensors  write .tmp, fsync, rename, fsync folder
/// 3. state.json, manifest.json: likewise
/// 4. COMMIT (digest of the manifest, step, generation, number of files): likewise, last; only now it exists
/// 5. retention: the oldest committed steps beyond `keep` lose COMMIT first (durably), then their files.
class CheckpointWriter {
 public:
  /// `config` is the resolved run file's text, kept for information and for refusing other settings on
  /// resume.
  CheckpointWriter(std::filesystem::path folder, int64_t step, int num_ranks, std::string config);

  /// Thread-safe for different ranks. Throws Unavailable (disk full: the message says so); then call
  /// `abandon`.
  void write_rank(const SnapshotRing::View& snapshot);
  /// Once all ranks are written. Throws InternalError if a rank is missing, CorruptData if the boxes do not
  /// cover a tensor exactly once or ranks disagree on the state.
  void commit();
  /// Removes what was written; never touches another step.
  void abandon() noexcept;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  struct FileRecord;
  std::filesystem::path folder_;
  std::filesystem::path path_;
  int64_t step_;
  int64_t generation_ = 0;
  int num_ranks_;
  std::string config_;
  std::mutex mutex_;                  // guards ranks_
  std::map<int, std::string> ranks_;  // rank -> its part of the manifest, JSON
  std::string state_;
};

/// Keeps the newest `keep` committed checkpoints of `folder`, removes older ones and uncommitted remains that
/// no writer owns (older than the newest committed). Deletes COMMIT first.
void prune(const std::filesystem::path& folder, int64_t keep);

}  // namespace chiliad::checkpoint
