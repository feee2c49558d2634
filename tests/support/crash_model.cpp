#include "tests/support/crash_model.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>

#include "chiliad/base/error.h"
#include "chiliad/base/rng.h"
#include "chiliad/checkpoint/commit.h"
#include "chiliad/checkpoint/reader.h"
#include "chiliad/io/faults.h"
#include "tests/support/checkpoint_kit.h"
#include "tests/support/temp_dir.h"

namespace chiliad::test {
namespace {

namespace fs = std::filesystem;
using io::FileOp;

constexpr int kNumRanks = 2;

std::string content_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void put_content(const fs::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

/// Follows the file operations of a run and stops it before the n-th. Knows what a power loss at that moment
/// may undo.
class Disk {
 public:
  explicit Disk(int stop_at) : stop_at_(stop_at) {}

  io::FaultAction on_operation(FileOp op, const std::string& path) {
    std::lock_guard lock(mutex_);
    if (++count_ < stop_at_) {
      record(op, path);
      return {};
    }
    if (count_ == stop_at_)
      stopped_before_ = fmt::format("operation {} ({} {})", count_, io::file_op_name(op), path);
    return {EIO, false};
  }

  [[nodiscard]] bool stopped() const { return !stopped_before_.empty(); }
  [[nodiscard]] const std::string& stopped_before() const { return stopped_before_; }

  void lose_power(Rng& rng) const {
    for (const auto& path : unsynced_) damage(path, rng);
    for (const auto& path : renamed_) {
      if (fs::exists(path) && rng.below(2) == 0) fs::rename(path, path + ".tmp");
    }
    for (const auto& path : made_) {
      if (rng.below(2) == 0) fs::remove_all(path);
    }
    for (auto it = removed_.rbegin(); it != removed_.rend(); ++it) {
      if (rng.below(2) == 0) bring_back(it->first, it->second);
    }
  }

 private:
  void record(FileOp op, const std::string& path) {
    switch (op) {
      case FileOp::kWrite:
        unsynced_.insert(path);
        break;
      case FileOp::kSync:
        unsynced_.erase(path);
        break;
      case FileOp::kMakeFolder:
        made_.insert(path);
        break;
      case FileOp::kSyncFolder:
        settle(path);
        break;
      case FileOp::kRename:
        if (unsynced_.erase(path + ".tmp") > 0) unsynced_.insert(path);
        renamed_.insert(path);
        break;
      case FileOp::kRemove:
        removed_.emplace_back(path, fs::is_directory(path) ? std::nullopt : std::optional(content_of(path)));
        unsynced_.erase(path);
        renamed_.erase(path);
        break;
      default:
        break;
    }
  }

  void settle(const std::string& folder) {
    const auto inside = [&](const std::string& path) { return fs::path(path).parent_path() == folder; };
    std::erase_if(renamed_, inside);
    std::erase_if(made_, inside);
    std::erase_if(removed_, [&](const auto& entry) { return inside(entry.first); });
  }

  static void damage(const std::string& path, Rng& rng) {
    if (!fs::exists(path)) return;
    const uint64_t size = fs::file_size(path);
    switch (rng.below(4)) {
      case 0:
        fs::resize_file(path, 0);
        break;
      case 1:
        fs::resize_file(path, rng.below(size + 1));
        break;
      case 2:
        put_content(path, std::string(size, '\0'));
        break;
      default:
        break;
    }
  }

  void bring_back(const std::string& path, const std::optional<std::string>& content) const {
    const fs::path parent = fs::path(path).parent_path();
    const bool parent_may_return = std::any_of(removed_.begin(), removed_.end(),
                                               [&](const auto& entry) { return entry.first == parent; });
    if (!fs::exists(parent) && !parent_may_return) return;
    fs::create_directories(content.has_value() ? parent : fs::path(path));
    if (content.has_value()) put_content(path, *content);
  }

  int stop_at_;
  int count_ = 0;
  std::string stopped_before_;
  std::mutex mutex_;  // guards all
  std::set<std::string> unsynced_;
  std::set<std::string> renamed_;  // in folders not synced since, as the others below
  std::set<std::string> made_;
  std::vector<std::pair<std::string, std::optional<std::string>>> removed_;
};

struct Scene {
  std::vector<WholeTensor> old_tensors = make_tensors(1);
  std::vector<WholeTensor> new_tensors = make_tensors(2);
  TempDir original;

  Scene() { save_checkpoint(original.path(), 1, old_tensors, kNumRanks, 1); }
};

/// Returns whether commit came back.
bool save_and_prune(const fs::path& folder, const Scene& scene) {
  try {
    save_checkpoint(folder, 2, scene.new_tensors, kNumRanks, 2);
  } catch (const Unavailable&) {
    return false;
  }
  try {
    checkpoint::prune(folder, 1);
  } catch (const Unavailable&) {
  }
  return true;
}

/// What is wrong with the folder; empty if nothing.
std::string violation(const fs::path& folder, const Scene& scene, bool committed) {
  for (const auto& listing : checkpoint::list(folder)) {
    if (!listing.committed) continue;
    try {
      checkpoint::Checkpoint::open(listing.path).verify();
    } catch (const Error& error) {
      return fmt::format("a COMMIT stands for a damaged checkpoint: {}", error.what());
    }
  }
  const auto best = checkpoint::newest_good(folder, [](const std::string&, const std::string&) {});
  if (!best.has_value()) return "no checkpoint is left";
  if (best->step() != 1 && best->step() != 2)
    return fmt::format("step {} is neither old nor new", best->step());
  if (committed && best->step() != 2) return "a step whose commit came back is lost";
  const std::string other = difference(*best, best->step() == 1 ? scene.old_tensors : scene.new_tensors);
  return other.empty() ? "" : fmt::format("step {}: {}", best->step(), other);
}

}  // namespace

CrashReport crash_at_every_operation(std::optional<uint64_t> power_loss_seed) {
  const Scene scene;
  CrashReport report;
  constexpr int kMostOperations = 2000;
  for (int n = 1; n <= kMostOperations; ++n) {
    const TempDir temp;
    const fs::path folder = temp.path() / "checkpoints";
    fs::copy(scene.original.path(), folder, fs::copy_options::recursive);
    Disk disk(n);
    bool committed = false;
    {
      const io::ScopedFaultHook hook(
          [&](FileOp op, const std::string& path) { return disk.on_operation(op, path); });
      committed = save_and_prune(folder, scene);
    }
    if (power_loss_seed.has_value()) {
      Rng rng({*power_loss_seed, static_cast<uint64_t>(n)});
      disk.lose_power(rng);
    }
    ++report.num_cases;
    const std::string wrong = violation(folder, scene, committed);
    const std::string where = disk.stopped() ? disk.stopped_before() : "the end";
    if (!wrong.empty()) report.violations.push_back(fmt::format("before {}: {}", where, wrong));
    if (!disk.stopped()) return report;
  }
  report.violations.emplace_back("the run never ends");
  return report;
}

}  // namespace chiliad::test
