#include "chiliad/supervise/launch/run_directory.h"

#include <fmt/core.h>

#include <unistd.h>
#include <nlohmann/json.hpp>

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/base/log.h"
#include "chiliad/checkpoint/commit.h"
#include "chiliad/checkpoint/reader.h"

namespace chiliad::supervise {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxOwnerBytes = 4096;
constexpr int64_t kMaxRunFileBytes = 4 << 20;
constexpr int64_t kMaxJournalBytes = 1LL << 30;

std::string owner_text() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return fmt::format("pid {} on host {}", ::getpid(), host.data());
}

/// The first name of the form "name-N" that is free.
fs::path free_name(const fs::path& wanted) {
  for (int n = 1;; ++n) {
    fs::path candidate = wanted.string() + fmt::format("-{}", n);
    if (!fs::exists(candidate)) return candidate;
  }
}

void set_aside(const RunDirectory& directory) {
  const std::array<fs::path, 8> of_run{directory.checkpoints(), directory.journal(),  directory.metrics(),
                                       directory.ledger(),      directory.run_file(), directory.tensorboard(),
                                       directory.trace(),       directory.samples()};
  const fs::path target = free_name(directory.path() / "set-aside");
  for (const auto& path : of_run) {
    if (!fs::exists(path)) continue;
    io::make_folders(target);
    io::rename_path(path, target / path.filename());
  }
  if (fs::exists(target))
    log_info("{}: the earlier run was moved to {}", directory.path().string(), target.string());
}

struct Damage {
  std::string path;
  std::string why;
};

void move_damaged(const RunDirectory& directory, const std::vector<Damage>& damaged) {
  for (const auto& [path, why] : damaged) {
    try {
      io::make_folders(directory.path() / "damaged");
      io::rename_path(path, free_name(directory.path() / "damaged" / fs::path(path).filename()));
    } catch (const Unavailable& error) {
      log_warn("{}", error.what());
    }
  }
}

/// The order of items is a function of the data set: other data is another run.
void check_same_data(const checkpoint::Checkpoint& good, const spec::RunFile& file,
                     const std::string& run_dir, const std::string& data) {
  std::string stored;
  try {
    stored = parse_json<nlohmann::json>(good.state()).at("cursor").at("data").get<std::string>();
  } catch (const nlohmann::json::exception&) {
    return;  // the worker names what is wrong with the state
  }
  if (data.empty() || stored == data) return;
  throw InvalidInput(
      file.data.sources.empty() ? file.data.index : "data.sources",
      fmt::format(
          "the data changed since the checkpoint of step {} (index digest was {}, is now {}). Restore "
          "the data, give the new run its own directory with --set run.dir=DIR, or begin anew with "
          "--from-scratch, which sets {} aside",
          good.step(), stored, data, run_dir));
}

}  // namespace

io::FileLock RunDirectory::take() const {
  io::make_folders(path_);
  const fs::path lock_path = lock();
  auto held = io::FileLock::try_lock(lock_path, owner_text());
  if (held.has_value()) return std::move(*held);
  throw InvalidInput(
      path_.string(),
      fmt::format("another job is using this run directory: {}. Wait for it, stop it, or give this run "
                  "its own directory with --set run.dir=DIR",
                  io::read_text(lock_path, kMaxOwnerBytes)));
}

void check_resumable(const checkpoint::Checkpoint& good, const spec::RunFile& file,
                     const std::string& run_dir, const std::string& data) {
  const auto stored =
      spec::parse_run_file(good.config(), (good.path() / "run file").string(), file.run.name, {});
  check_same_run(spec::compare(stored, file), run_dir);
  check_same_data(good, file, run_dir, data);
}

void check_same_run(const std::vector<spec::Difference>& differences, const std::string& run_dir) {
  std::string list;
  for (const auto& difference : differences) {
    if (difference.free_on_resume) continue;
    list += fmt::format("{}{} was {}, is now {}", list.empty() ? "" : "; ", difference.key,
                        difference.old_value, difference.new_value);
  }
  if (list.empty()) return;
  throw InvalidInput(run_dir,
                     fmt::format("cannot resume with other settings: {}. Put them back, or start another run "
                                 "with --set run.dir=DIR",
                                 list));
}

StartPoint find_start(const RunDirectory& directory, const spec::RunFile& file, bool from_scratch,
                      const std::string& data) {
  if (from_scratch) set_aside(directory);
  if (!fs::is_directory(directory.checkpoints())) return {};
  std::vector<Damage> damaged;
  const auto good =
      checkpoint::newest_good(directory.checkpoints(), [&](const std::string& path, const std::string& why) {
        log_warn("checkpoint {} cannot be used and is skipped: {}", path, why);
        damaged.push_back({path, why});
      });
  if (!good.has_value()) {
    if (damaged.empty()) return {};
    throw CorruptData(
        directory.checkpoints().string(),
        fmt::format("none of the {} checkpoints is good (first: {}). Restore one from a copy, or start "
                    "again with --from-scratch, which sets them aside",
                    damaged.size(), damaged.front().why));
  }
  check_resumable(*good, file, directory.path().string(), data);
  move_damaged(directory, damaged);
  return {good->path().string(), good->step(), good->step() >= file.run.steps};
}

void prepare_journal(const RunDirectory& directory, const StartPoint& start, const spec::RunFile& file) {
  if (!fs::exists(directory.journal())) return;
  if (start.checkpoint.empty()) {
    bool same_content = false;
    if (fs::exists(directory.run_file())) {
      try {
        const auto text = io::read_text(directory.run_file(), kMaxRunFileBytes);
        const auto earlier = spec::parse_run_file(text, directory.run_file().string(), file.run.name, {});
        // Amendments name samples by their number in the index.
        same_content = earlier.data.index == file.data.index && earlier.data.sources == file.data.sources &&
                       spec::content_digest(earlier) == spec::content_digest(file);
      } catch (const InvalidInput& error) {
        log_warn("{}: the journal of the earlier attempt is dropped", error.what());
      }
    }
    if (!same_content) {
      io::remove_file(directory.journal());
      return;
    }
  }
  const std::string text = io::read_text(directory.journal(), kMaxJournalBytes);
  if (text.empty() || text.back() == '\n') return;
  const size_t end = text.rfind('\n');
  io::write_atomic(directory.journal(),
                   std::string_view(text).substr(0, end == std::string::npos ? 0 : end + 1));
}

}  // namespace chiliad::supervise
