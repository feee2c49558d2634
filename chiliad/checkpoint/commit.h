#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "chiliad/checkpoint/snapshot.h"

namespace chiliad::checkpoint {

namespace detail {
struct Manifest;
}

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
  /// Makes the folder. Throws Unavailable if that fails.
  CheckpointWriter(std::filesystem::path folder, int64_t step, int num_ranks, std::string config);
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

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
  struct Part;
  void make_generation();
  void merge(int rank, Part part);
  void check_complete() const;

  std::filesystem::path folder_;
  std::filesystem::path path_;
  std::mutex mutex_;  // guards what follows
  std::unique_ptr<detail::Manifest> manifest_;
  std::map<std::pair<std::string, std::string>, size_t>
      tensor_index_;  // (section, name) -> place in the manifest
  std::set<int> ranks_;
  std::optional<std::string> state_;
  std::string disagreement_;  // the first, if any
};

/// Keeps the newest `keep` committed checkpoints of `folder`, removes older ones and uncommitted remains that
/// no writer owns (older than the newest committed). Only checkpoints that open count towards `keep` (at
/// least 1), so a damaged one never displaces a good one; the newest committed one is never removed. Deletes
/// COMMIT first. Throws Unavailable if the disk fails.
void prune(const std::filesystem::path& folder, int64_t keep);

}  // namespace chiliad::checkpoint
