#include "chiliad/report/run_data.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/io/file.h"
#include "chiliad/loader/journal_file.h"

namespace chiliad::report {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int64_t kMaxTextBytes = 1LL << 30;
constexpr int64_t kMaxPageBytes = 16LL << 20;
constexpr size_t kMaxWarnings = 100;

/// Null where the text is no JSON, e.g. a line that is being written.
Json parse(std::string_view text) {
  Json value = try_parse_json<Json>(text);
  return value.is_discarded() ? Json() : value;
}

std::string text_of(const Json& object, const char* key) {
  if (!object.is_object() || !object.contains(key)) return "";
  const auto& value = object[key];
  return value.is_string() ? value.get<std::string>() : json_text(value);
}

int64_t number_of(const Json& object, const char* key, int64_t otherwise) {
  if (!object.is_object() || !object.contains(key) || !object[key].is_number_integer()) return otherwise;
  return object[key].get<int64_t>();
}

void each_line(const fs::path& path, const std::function<void(const std::string&)>& use) {
  if (!io::stat_file(path).has_value()) return;
  std::istringstream lines(io::read_text(path, kMaxTextBytes));
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) use(line);
  }
}

void read_run_file(const fs::path& path, RunData& run) {
  if (!io::stat_file(path).has_value()) return;
  run.run_file_text = io::read_text(path, kMaxPageBytes);
  run.run_file = spec::parse_run_file(run.run_file_text, path.string(), path.parent_path().filename(), {});
}

void read_metrics(const fs::path& path, RunData& run) {
  int64_t unreadable = 0;
  each_line(path, [&](const std::string& line) {
    observe::StepMetrics metrics;
    try {
      metrics = observe::StepMetrics::from_json(line);
    } catch (const CorruptData&) {
      ++unreadable;
      return;
    }
    // After a resume steps come again: the last line of a step holds.
    while (!run.metrics.empty() && run.metrics.back().step >= metrics.step) run.metrics.pop_back();
    run.metrics.push_back(std::move(metrics));
  });
  if (unreadable > 0)
    run.problems.push_back(fmt::format("{}: {} lines cannot be read", path.string(), unreadable));
}

void read_log(const fs::path& path, RunData& run) {
  constexpr std::string_view kResumes = "resuming from ";
  constexpr std::string_view kStep = "(step ";
  each_line(path, [&](const std::string& line) {
    const Json object = parse(line);
    LogEntry entry{text_of(object, "time"), text_of(object, "level"), text_of(object, "message")};
    const auto at = entry.message.rfind(kStep);
    if (entry.message.starts_with(kResumes) && at != std::string::npos) {
      int64_t step = 0;
      const char* end = entry.message.data() + entry.message.size();
      if (std::from_chars(entry.message.data() + at + kStep.size(), end, step).ec == std::errc())
        run.resumes.push_back(step);
    }
    if (entry.level != "warning" && entry.level != "error") return;
    ++run.num_warnings;
    run.warnings.push_back(std::move(entry));
    if (run.warnings.size() > kMaxWarnings) run.warnings.erase(run.warnings.begin());
  });
}

/// Files of a folder by name; none where there is no folder.
std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(folder, missing)) {
    if (entry.is_regular_file(missing)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void read_incidents(const fs::path& folder, RunData& run) {
  for (const auto& path : files_of(folder)) {
    if (path.extension() != ".json") continue;
    const Json page = parse(io::read_text(path, kMaxPageBytes));
    IncidentEntry entry;
    entry.file = path.filename();
    entry.time = text_of(page, "time");
    entry.message = text_of(page, "message");
    entry.last_committed = number_of(page, "last_committed_step", -1);
    entry.sealed = number_of(page, "sealed_step", -1);
    if (page.is_object() && page.contains("ranks") && page["ranks"].is_array()) {
      for (const auto& rank : page["ranks"])
        entry.where += fmt::format("{}rank {}: step {}, {}", entry.where.empty() ? "" : "; ",
                                   text_of(rank, "rank"), text_of(rank, "step"), text_of(rank, "phase"));
    }
    run.incidents.push_back(std::move(entry));
  }
}

void read_checkpoints(const fs::path& folder, RunData& run) {
  if (!fs::is_directory(folder)) return;
  for (auto& listing : checkpoint::list(folder)) {
    CheckpointEntry entry{std::move(listing)};
    if (entry.listing.committed && entry.listing.problem.empty()) {
      try {
        const auto opened = checkpoint::Checkpoint::open(entry.listing.path);
        entry.num_bytes = opened.num_bytes();
        entry.num_ranks = opened.num_ranks();
      } catch (const Error& error) {  // removed meanwhile by the run, which keeps the newest only
        entry.listing.problem = error.what();
      }
    }
    run.checkpoints.push_back(std::move(entry));
  }
}

void read_journal(const fs::path& path, RunData& run) {
  if (!io::stat_file(path).has_value()) return;
  run.journal = loader::read_journal(path);
}

void read_samples(const fs::path& folder, RunData& run) {
  run.samples = observe::list_samples(folder);
}

void check_is_run(const RunPaths& paths) {
  const auto place = paths.folder.string();
  if (!fs::is_directory(paths.folder))
    throw InvalidInput(place,
                       "expected a run directory, and there is no such folder. Give the folder that "
                       "`chiliad train` named");
  for (const auto& path : {paths.run_file, paths.metrics, paths.checkpoints, paths.lock}) {
    if (fs::exists(path)) return;
  }
  throw InvalidInput(place,
                     "expected a run directory, got a folder without run.yaml, metrics.jsonl and "
                     "checkpoints/. Give the folder that `chiliad train` named");
}

}  // namespace

RunData read_run(const RunPaths& paths) {
  check_is_run(paths);
  RunData run;
  run.folder = paths.folder.string();
  const auto part = [&](auto read, const fs::path& path) {
    try {
      read(path, run);
    } catch (const Error& error) {
      run.problems.push_back(error.what());
    }
  };
  if (io::FileLock::is_held(paths.lock)) run.owner = io::read_text(paths.lock, kMaxPageBytes);
  part(read_run_file, paths.run_file);
  part(read_metrics, paths.metrics);
  part(read_log, paths.log);
  part(read_incidents, paths.incidents);
  part(read_checkpoints, paths.checkpoints);
  part(read_journal, paths.journal);
  part(read_samples, paths.samples);
  return run;
}

int64_t RunData::step() const {
  int64_t reached = metrics.empty() ? 0 : metrics.back().step;
  for (const auto& entry : checkpoints) {
    if (entry.listing.committed) reached = std::max(reached, entry.listing.step);
  }
  return reached;
}

int64_t RunData::steps() const {
  if (run_file.has_value()) return run_file->run.steps;
  return metrics.empty() ? 0 : metrics.back().steps;
}

std::string RunData::state() const {
  if (!owner.empty()) return "running";
  if (steps() > 0) {
    for (const auto& entry : checkpoints) {
      if (entry.listing.committed && entry.listing.problem.empty() && entry.listing.step >= steps())
        return "finished";
    }
  }
  return metrics.empty() && checkpoints.empty() ? "nothing written yet" : "stopped";
}

}  // namespace chiliad::report
