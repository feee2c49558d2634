#include "chiliad/checkpoint/commit.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "chiliad/base/error.h"
#include "chiliad/base/hash.h"
#include "chiliad/base/log.h"
#include "chiliad/base/planted.h"
#include "chiliad/checkpoint/detail/block_file.h"
#include "chiliad/checkpoint/detail/fields.h"
#include "chiliad/checkpoint/detail/manifest.h"
#include "chiliad/checkpoint/detail/part_file.h"
#include "chiliad/checkpoint/reader.h"
#include "chiliad/io/faults.h"
#include "chiliad/io/file.h"

namespace chiliad::checkpoint {
namespace {

namespace fs = std::filesystem;

/// Makes a folder durably; false if it exists. Not io::make_folders, to which an existing one is fine: two
/// writers must never share a generation.
bool make_new_folder(const fs::path& path) {
  const io::FaultAction action = io::before_file_op(io::FileOp::kMakeFolder, path.string());
  if (action.error != 0) {
    throw Unavailable(path.string(), fmt::format("make folder failed: {}", std::strerror(action.error)));
  }
  std::error_code error;
  const bool made = fs::create_directory(path, error);
  if (error) throw Unavailable(path.string(), fmt::format("make folder failed: {}", error.message()));
  if (made) io::sync_folder(path.parent_path());
  return made;
}

/// COMMIT goes first, durably: what is left of a broken removal is not committed.
void remove_checkpoint(const fs::path& path) {
  const fs::path commit = path / "COMMIT";
  if (io::stat_file(commit).has_value()) {
    io::remove_file(commit);
    io::sync_folder(path);
  }
  io::remove_tree(path);
  io::sync_folder(path.parent_path());
}

}  // namespace

/// What one rank adds to the manifest; `StoredBox::file` counts in `files`.
struct CheckpointWriter::Part {
  std::vector<detail::StoredFile> files;
  std::vector<detail::StoredTensor> tensors;
  std::string state;
};

CheckpointWriter::CheckpointWriter(fs::path folder, int64_t step, int num_ranks, std::string config)
    : folder_(std::move(folder)), manifest_(std::make_unique<detail::Manifest>()) {
  CHILIAD_CHECK_GE(step, 0);
  CHILIAD_CHECK_GE(num_ranks, 1);
  manifest_->step = step;
  manifest_->num_ranks = num_ranks;
  manifest_->config = std::move(config);
  make_generation();
}

CheckpointWriter::~CheckpointWriter() = default;

void CheckpointWriter::make_generation() {
  io::make_folders(folder_);
  detail::FolderName name{manifest_->step, 0};
  for (const detail::FolderName& other : detail::checkpoint_folders(folder_)) {
    if (other.step == name.step) name.generation = std::max(name.generation, other.generation + 1);
  }
  while (!make_new_folder(folder_ / name.to_string())) ++name.generation;
  manifest_->generation = name.generation;
  path_ = folder_ / name.to_string();
}

void CheckpointWriter::write_rank(const SnapshotRing::View& snapshot) {
  CHILIAD_CHECK_EQ(snapshot.step, manifest_->step);
  CHILIAD_CHECK_GE(snapshot.rank, 0);
  CHILIAD_CHECK_LT(snapshot.rank, manifest_->num_ranks);
  CHILIAD_CHECK_EQ(snapshot.boxes.size(), snapshot.digests.size());
  if (planted_bug("commit_first")) io::write_atomic(path_ / "COMMIT", detail::commit_text({}));

  Part part;
  part.state = snapshot.state;
  std::map<std::string, std::vector<size_t>> sections;
  for (size_t i = 0; i < snapshot.boxes.size(); ++i) {
    const OwnedBox& box = snapshot.boxes[i];
    CHILIAD_CHECK(detail::is_section_name(box.section), "section \"{}\" is not a plain name", box.section);
    part.tensors.push_back({box.section, box.name, box.dtype, box.shape, {}});
    if (box.box.count() > 0) sections[box.section].push_back(i);
  }
  for (const auto& [section, members] : sections) {
    std::vector<const OwnedBox*> boxes;
    for (const size_t i : members) boxes.push_back(&snapshot.boxes[i]);
    detail::WrittenPart written = detail::write_part(path_, detail::part_path(section, snapshot.rank), boxes);
    for (size_t k = 0; k < members.size(); ++k) {
      const size_t i = members[k];
      part.tensors[i].boxes.push_back(
          {part.files.size(), snapshot.boxes[i].box, written.at[k], snapshot.digests[i]});
    }
    part.files.push_back(std::move(written.file));
  }
  merge(snapshot.rank, std::move(part));
}

void CheckpointWriter::merge(int rank, Part part) {
  std::lock_guard lock(mutex_);
  CHILIAD_CHECK(ranks_.insert(rank).second, "rank {} was written twice", rank);
  if (!state_.has_value()) state_ = part.state;
  if (*state_ != part.state && disagreement_.empty()) {
    disagreement_ = fmt::format("rank {} has another state than the ranks before it", rank);
  }
  const size_t first_file = manifest_->files.size();
  for (auto& file : part.files) manifest_->files.push_back(std::move(file));
  for (auto& tensor : part.tensors) {
    const auto [found, is_new] =
        tensor_index_.try_emplace({tensor.section, tensor.name}, manifest_->tensors.size());
    for (auto& box : tensor.boxes) box.file += first_file;
    if (is_new) {
      manifest_->tensors.push_back(std::move(tensor));
      continue;
    }
    detail::StoredTensor& known = manifest_->tensors[found->second];
    if ((known.dtype != tensor.dtype || known.shape != tensor.shape) && disagreement_.empty()) {
      disagreement_ = fmt::format("rank {} has {}/{} as {} {}, the ranks before it as {} {}", rank,
                                  tensor.section, tensor.name, dtype_name(tensor.dtype),
                                  tensor.shape.to_string(), dtype_name(known.dtype), known.shape.to_string());
    }
    for (auto& box : tensor.boxes) known.boxes.push_back(std::move(box));
  }
}

void CheckpointWriter::check_complete() const {
  for (int rank = 0; rank < manifest_->num_ranks; ++rank) {
    CHILIAD_CHECK(ranks_.contains(rank), "commit of step {} without rank {}", manifest_->step, rank);
  }
  if (!disagreement_.empty()) throw CorruptData(path_.string(), disagreement_);
  for (const detail::StoredTensor& tensor : manifest_->tensors) {
    detail::check_coverage(fmt::format("{}: {}/{}", path_.string(), tensor.section, tensor.name), tensor);
  }
}

void CheckpointWriter::commit() {
  std::lock_guard lock(mutex_);
  check_complete();
  detail::BlockWriter state(path_, "state.json");
  state.write(*state_);
  manifest_->files.push_back(state.finish());

  const std::string text = detail::manifest_text(*manifest_);
  CHILIAD_CHECK_LE(static_cast<int64_t>(text.size()), detail::kMaxManifestBytes);
  io::write_atomic(path_ / "manifest.json", text);
  const detail::CommitRecord record{hash128(std::as_bytes(std::span(text))), manifest_->step,
                                    manifest_->generation, static_cast<int64_t>(manifest_->files.size())};
  io::write_atomic(path_ / "COMMIT", detail::commit_text(record));
}

void CheckpointWriter::abandon() noexcept {
  try {
    remove_checkpoint(path_);
  } catch (const std::exception& error) {
    log_warn("an abandoned checkpoint is left behind: {}", error.what());
  }
}

void prune(const fs::path& folder, int64_t keep) {
  CHILIAD_CHECK_GE(keep, 1);
  int64_t good = 0;
  bool committed_seen = false;
  for (const Listing& listing : list(folder)) {
    const bool is_newest = listing.committed && !committed_seen;
    committed_seen = committed_seen || listing.committed;
    const bool counts = listing.committed && listing.problem.empty();
    if (counts) ++good;
    const bool superseded = counts ? good > keep : good >= keep;
    const bool remove = listing.committed ? superseded : committed_seen;
    if (remove || (is_newest && planted_bug("prune_newest"))) remove_checkpoint(listing.path);
  }
}

}  // namespace chiliad::checkpoint
