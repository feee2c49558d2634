#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "apps/chiliad/block_cache.h"
#include "apps/chiliad/run_setup.h"
#include "apps/chiliad/verbs.h"
#include "chiliad/base/clock.h"
#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/base/units.h"
#include "chiliad/features/part_plan.h"
#include "chiliad/io/file.h"
#include "chiliad/ipc/child_process.h"
#include "chiliad/observe/terminal_progress.h"
#include "chiliad/supervise/launch/signal_watch.h"
#include "chiliad/supervise/launch/workers.h"

namespace chiliad::cli {
namespace {

namespace fs = std::filesystem;

constexpr auto kPoll = std::chrono::milliseconds(100);

/// One column on its way.
struct Column {
  features::Identity identity;
  fs::path folder;
  std::vector<fs::path> paths;  // of its parts, and of the empty text

  [[nodiscard]] int64_t num_there() const {
    return std::count_if(paths.begin(), paths.end(), [](const auto& path) { return fs::exists(path); });
  }
};

/// What processes that were killed left: parts under names of their own.
void remove_partial(const fs::path& folder) {
  if (!fs::is_directory(folder)) return;
  std::vector<fs::path> partial;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const bool is_run_file = name.starts_with("run-") && name.ends_with(".yaml");
    if (is_run_file || name.find(".safetensors.tmp-") != std::string::npos) partial.push_back(entry.path());
  }
  for (const auto& path : partial) io::remove_file(path);
}

/// The processes that make a column's parts, one a share.
class Crew {
 public:
  Crew(const spec::RunFile& run, const fs::path& run_file, features::Kind kind) {
    for (int64_t rank = 0; rank < run.parallel.nproc; ++rank) {
      ipc::SpawnOptions options;
      options.argv = {supervise::worker_program(),        "encode",   run_file.string(),         "--kind",
                      features::kind_name(kind),          "--rank",   std::to_string(rank),      "--of",
                      std::to_string(run.parallel.nproc), "--parent", std::to_string(::getpid())};
      options.ignore_interrupt = true;
      members_.push_back(ipc::ChildProcess::spawn(options));
    }
    codes_.resize(members_.size());
  }

  /// Whether any is still at work.
  [[nodiscard]] bool working() {
    bool any = false;
    for (size_t i = 0; i < members_.size(); ++i) {
      if (!codes_[i].has_value()) {
        codes_[i] = members_[i].wait({});
        if (codes_[i].has_value()) report(i, *codes_[i]);
      }
      any = any || !codes_[i].has_value();
    }
    return any;
  }
  void stop() {
    for (auto& member : members_) member.signal(SIGTERM);
  }
  /// Of the first that failed.
  [[nodiscard]] int exit_code() const {
    for (const auto& status : codes_) {
      if (status->signal != 0) return 4;
      if (status->code != 0) return status->code;
    }
    return 0;
  }

 private:
  /// At once: the others may work for hours. Where it failed by itself, it has said why.
  void report(size_t i, const ipc::ExitStatus& status) const {
    if (status.signal == 0 && status.code == 0) return;
    const std::string others = members_.size() > 1 ? " What the others make is kept." : "";
    fmt::print(stderr, "error: encode: process {} of {} ended with {}.{} The same command makes the rest\n",
               i + 1, members_.size(), status.to_string(), others);
  }

  std::vector<ipc::ChildProcess> members_;
  std::vector<std::optional<ipc::ExitStatus>> codes_;
};

Column open_column(const spec::RunFile& run, const index::Index& index, features::Kind kind,
                   const std::vector<features::PartPlan>& parts) {
  Column column;
  column.identity = features::identity_of(run, kind);
  column.folder = features::column_folder(index, column.identity);
  for (const auto& part : parts) {
    column.paths.push_back(
        features::part_path(column.folder, index.manifest().shards[part.shard].content, part.number));
  }
  if (kind == features::Kind::kText) column.paths.push_back(features::empty_text_path(column.folder));
  return column;
}

constexpr int kStopped = 130;

/// Makes what is missing. Returns an exit code; kStopped after a signal.
int make_parts(const spec::RunFile& run, const Column& column, supervise::SignalWatch& signals, bool quiet) {
  const auto resolved = column.folder / fmt::format("run-{}.yaml", ::getpid());
  io::write_atomic(resolved, spec::to_yaml(run));
  const SystemClock clock;
  const auto total = std::ssize(column.paths);
  observe::TerminalProgress progress(
      std::cerr, observe::progress_style(quiet, STDERR_FILENO), clock,
      {.label = fmt::format("encoding {}",
                            column.identity.kind == features::Kind::kText ? "captions" : "pictures"),
       .unit = "part"});
  Crew crew(run, resolved, column.identity.kind);
  bool stopped = false;
  while (crew.working()) {
    progress.update(column.num_there(), total, "");
    std::this_thread::sleep_for(kPoll);
    if (signals.take() > 0 && !stopped) {
      stopped = true;
      crew.stop();
    }
  }
  io::remove_file(resolved);
  progress.update(column.num_there(), total, "");
  progress.finish();
  return stopped ? kStopped : crew.exit_code();
}

nlohmann::ordered_json describe(const Column& column, const features::ColumnSummary& summary) {
  nlohmann::ordered_json page{{"kind", features::kind_name(column.identity.kind)},
                              {"folder", column.folder.string()},
                              {"features", summary.num_features},
                              {"refused", summary.num_refused},
                              {"bytes", summary.num_bytes},
                              {"channels", summary.channels}};
  if (column.identity.kind == features::Kind::kLatents) {
    page["mean"] = summary.mean;
    page["deviation"] = summary.deviation;
    page["scaling_factor"] = summary.scaling_factor;
  }
  return page;
}

void print(const Column& column, const features::ColumnSummary& summary,
           const spec::EncodersOptions& encoders) {
  const bool latents = column.identity.kind == features::Kind::kLatents;
  fmt::print("{:<8} {} features of {} channels, {}, in {}; refused {}\n",
             features::kind_name(column.identity.kind), summary.num_features, summary.channels,
             format_bytes(summary.num_bytes), column.folder.string(), summary.num_refused);
  if (!latents) return;
  const bool given = encoders.latent_scale > 0.0;
  const double scale = given ? encoders.latent_scale : summary.scaling_factor;
  fmt::print("{:<8} mean {:.4f}, standard deviation {:.4f}; {} is {}", "", summary.mean, summary.deviation,
             given ? "encoders.latent_scale" : "the autoencoder's scaling_factor", scale);
  const double scaled = summary.deviation * scale;
  if (summary.deviation > 0.0 && (scaled < 0.5 || scaled > 2.0))
    fmt::print(
        ", which makes it {:.3f}.\n{:<8} encoders.latent_scale: {:.4f} with latent_shift: {:.4f} would make "
        "it 1",
        scaled, "", 1.0 / summary.deviation, summary.mean);
  fmt::print("\n");
}

void report(const Column& column, const features::ColumnSummary& summary, const spec::RunFile& file,
            const RunArguments& arguments, nlohmann::ordered_json& page) {
  page.push_back(describe(column, summary));
  if (!arguments.json && !arguments.quiet) print(column, summary, file.encoders);
}

/// Makes what is missing of the columns of one source. Returns an exit code; `page` gets what there is then.
int encode_source(const spec::RunFile& file, const RunArguments& arguments, supervise::SignalWatch& signals,
                  nlohmann::ordered_json& page) {
  const auto index = loader::open_index(file.data);
  const stepplan::Plan plan(index, file.data, file.run.seed, [](uint32_t, uint32_t) { return 1U; });
  const auto parts = features::plan_parts(index, plan);
  const auto cache = own_block_cache(file, index, 1);
  for (const auto kind : features::kinds_of(file)) {
    const auto column = open_column(file, index, kind, parts);
    const auto counts = features::count_parts(index, parts);
    if (column.num_there() == std::ssize(column.paths)) {  // perhaps on a disk that takes no lock
      const auto there = features::summarise(index, file, column.identity, parts);
      if (features::is_finished(column.folder, column.identity, counts, there)) {
        report(column, there, file, arguments, page);
        continue;
      }
    }
    io::make_folders(column.folder);
    const auto lock =
        io::FileLock::try_lock(column.folder / "lock", fmt::format("chiliad encode, process {}", ::getpid()));
    if (!lock.has_value()) {
      throw Unavailable(column.folder.string(),
                        "another chiliad encode is at work here. Wait for it, or stop it");
    }
    remove_partial(column.folder);
    if (column.num_there() < std::ssize(column.paths)) {
      const int code = make_parts(file, column, signals, arguments.quiet);
      if (code == kStopped) {
        fmt::print(stderr, "stopped: {} of {} parts are there. The same command goes on\n",
                   column.num_there(), column.paths.size());
      }
      if (code != 0) return code == kStopped ? 1 : code;
    }
    const auto summary = features::summarise(index, file, column.identity, parts);
    features::finish_column(column.folder, column.identity, counts, summary);
    report(column, summary, file, arguments, page);
  }
  return 0;
}

int run(const RunArguments& arguments) {
  const auto file = read_run(arguments);
  if (features::kinds_of(file).empty()) {
    throw InvalidInput(
        "model.family",
        fmt::format("expected dit, pixart, sd3 or flux, whose inputs are encoded, got {}. There "
                    "is nothing to encode for it",
                    file.model.family));
  }
  supervise::SignalWatch signals;
  nlohmann::ordered_json page = nlohmann::ordered_json::array();
  for (const auto& source : features::source_runs(file)) {
    const int code = encode_source(source, arguments, signals, page);
    if (code != 0) return code;
  }
  if (arguments.json) fmt::print("{}\n", json_text(page));
  return 0;
}

}  // namespace

void add_encode(Verb& parent) {
  auto arguments = std::make_shared<RunArguments>();  // shared by the parser and the action, until the end
  Verb verb = parent.add(
      "encode", "Runs frozen encoders over a data set: latents of pictures, encoded captions as columns");
  verb.option("RUN", arguments->run_file, "Run file with a section encoders").required();
  verb.option("--nproc", arguments->nproc, "Processes that encode (parallel.nproc)").within(1, 1024);
  add_overrides(verb, *arguments);
  auto python = std::make_shared<std::string>();
  verb.option("--python", *python, "file.py:Class that encodes the captions (encoders.text)");
  verb.flag("--json", arguments->json, "Prints the result as JSON");
  verb.flag("--quiet", arguments->quiet, "Shows no progress and no result, only errors");
  verb.footer(
      "Example: chiliad encode run.yaml --nproc 2\n"
      "The columns lie in the index's folder. What is there is not made again; the same command goes on "
      "after "
      "an interruption.");
  verb.run([arguments, python] {
    if (!python->empty()) arguments->overrides.push_back("encoders.text=" + *python);
    return run(*arguments);
  });
}

}  // namespace chiliad::cli
