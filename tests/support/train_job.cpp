#include "tests/support/train_job.h"

#include <fmt/core.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "chiliad/base/json_text.h"
#include "chiliad/checkpoint/reader.h"
#include "chiliad/io/file.h"
#include "tests/support/picture_set.h"
#include "tests/support/tiny_run.h"

namespace chiliad::test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> lines(const fs::path& path) {
  std::vector<std::string> all;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}

/// The arguments of a process, each with a zero after it; empty where it has gone.
std::string command_line(const fs::path& process) {
  std::ifstream in(process / "cmdline", std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

bool has_argument(const std::string& command, const std::string& name, const std::string& value) {
  const std::string zero(1, '\0');
  return command.find(zero + name + zero + value + zero) != std::string::npos;
}

template <typename Key, typename Value>
std::string first_difference(const std::map<Key, Value>& want, const std::map<Key, Value>& got) {
  if (want.empty()) return "nothing to compare with";
  for (const auto& [key, value] : want) {
    const auto it = got.find(key);
    if (it == got.end()) return fmt::format("{} is missing", key);
    if (it->second != value) return fmt::format("{} was {}, is {}", key, value, it->second);
  }
  return want.size() == got.size() ? "" : fmt::format("{} entries, expected {}", got.size(), want.size());
}

}  // namespace

TrainJob::TrainJob(int64_t steps, int64_t num_pictures) {
  write_pictures(pictures(), num_pictures);
  index_pictures(pictures(), index());
  std::ofstream(folder_.path() / "run.yaml") << tiny_run_file(index(), steps);
}

std::unique_ptr<Program> TrainJob::start(const std::string& run, int nproc,
                                         const Program::Environment& environment,
                                         const std::vector<std::string>& more) const {
  std::vector<std::string> argv{
      CHILIAD_BIN_DIR "/chiliad", "train", folder_.path() / "run.yaml",        "--nproc",
      std::to_string(nproc),      "--set", "run.dir=" + run_dir(run).string(), "--set",
      "observe.ledger=true"};
  argv.insert(argv.end(), more.begin(), more.end());
  return std::make_unique<Program>(std::move(argv), environment);
}

ProgramResult TrainJob::train(const std::string& run, int nproc, const Program::Environment& environment,
                              const std::vector<std::string>& more) const {
  return start(run, nproc, environment, more)->wait();
}

std::map<int64_t, observe::StepMetrics> TrainJob::metrics(const std::string& run) const {
  std::map<int64_t, observe::StepMetrics> steps;
  for (const auto& line : lines(run_dir(run) / "metrics.jsonl")) {
    const auto metrics = observe::StepMetrics::from_json(line);
    steps[metrics.step] = metrics;
  }
  return steps;
}

std::map<int64_t, std::string> TrainJob::ledger(const std::string& run) const {
  std::map<int64_t, std::string> steps;
  for (const auto& line : lines(run_dir(run) / "ledger.jsonl")) {
    const auto entry = parse_json<nlohmann::json>(line);
    steps[entry.at("step").get<int64_t>()] = entry.at("items").get<std::string>();
  }
  return steps;
}

std::map<int64_t, std::string> TrainJob::consumed(const std::string& run) const {
  std::map<int64_t, std::string> steps;
  for (const auto& line : lines(run_dir(run) / "ledger.jsonl")) {
    const auto entry = parse_json<nlohmann::json>(line);
    steps[entry.at("step").get<int64_t>()] = entry.at("consumed").get<std::string>();
  }
  return steps;
}

std::map<std::string, uint64_t> TrainJob::weights(const std::string& run) const {
  std::map<std::string, uint64_t> digests;
  const auto good = checkpoint::newest_good(run_dir(run) / "checkpoints", [](const auto&, const auto&) {});
  if (!good.has_value()) return digests;
  for (const auto& tensor : good->tensors()) digests[tensor.section + "/" + tensor.name] = tensor.digest;
  digests["step"] = static_cast<uint64_t>(good->step());
  return digests;
}

std::vector<int64_t> TrainJob::committed_steps(const std::string& run) const {
  std::vector<int64_t> steps;
  const auto folder = run_dir(run) / "checkpoints";
  if (!fs::is_directory(folder)) return steps;
  for (const auto& entry : checkpoint::list(folder)) {
    if (entry.committed && entry.problem.empty()) steps.push_back(entry.step);
  }
  return steps;
}

std::vector<pid_t> TrainJob::processes(const std::string& run) const {
  std::vector<pid_t> pids;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto command = command_line(entry.path());
    if (has_argument(command, "--run-dir", run_dir(run)) ||
        has_argument(command, "--set", "run.dir=" + run_dir(run).string())) {
      pids.push_back(static_cast<pid_t>(std::stol(name)));
    }
  }
  return pids;
}

std::optional<pid_t> TrainJob::worker(const std::string& run, int rank) const {
  for (const pid_t pid : processes(run)) {
    const auto command = command_line(fs::path("/proc") / std::to_string(pid));
    if (has_argument(command, "--rank", std::to_string(rank))) return pid;
  }
  return std::nullopt;
}

std::string ledger_difference(const TrainJob& job, const std::string& want, const std::string& got) {
  const std::string items = first_difference(job.ledger(want), job.ledger(got));
  return items.empty() ? first_difference(job.consumed(want), job.consumed(got)) : items;
}

std::string weight_difference(const TrainJob& job, const std::string& want, const std::string& got) {
  return first_difference(job.weights(want), job.weights(got));
}

}  // namespace chiliad::test
