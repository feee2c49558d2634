#include "chiliad/supervise/launch/job.h"

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <nlohmann/json.hpp>

#include "chiliad/base/json_text.h"
#include "chiliad/base/log.h"
#include "chiliad/base/units.h"
#include "chiliad/io/file.h"
#include "chiliad/supervise/launch/job_loop.h"
#include "chiliad/supervise/launch/run_directory.h"
#include "chiliad/supervise/launch/signal_watch.h"
#include "chiliad/supervise/launch/workers.h"

namespace chiliad::supervise {
namespace {

MachineOptions machine_options(const spec::RunFile& file) {
  const auto seconds = [](double value) { return Nanoseconds(static_cast<int64_t>(value * 1e9)); };
  MachineOptions options;
  options.num_ranks = static_cast<int>(file.parallel.nproc);
  options.hang_timeout = seconds(file.supervise.hang_timeout_s);
  options.peer_grace = seconds(file.supervise.exit_grace_s);
  options.checkpoint_timeout = seconds(file.checkpoint.timeout_s);
  return options;
}

WorkerOptions worker_options(const JobOptions& options, const RunDirectory& directory,
                             const StartPoint& start) {
  WorkerOptions workers;
  workers.program = options.worker;
  workers.run_dir = directory.path().string();
  workers.run_file = directory.run_file().string();
  workers.journal = directory.journal().string();
  workers.resume = start.checkpoint;
  workers.num_ranks = static_cast<int>(options.file.parallel.nproc);
  workers.num_threads = static_cast<int>(options.file.parallel.threads);
  return workers;
}

void write_incident_page(const RunDirectory& directory, const JobLoop& loop, const Clock& clock,
                         JobReport& report) {
  try {
    const Incident incident{loop.outcome(), loop.last_positions(), loop.last_committed(), loop.sealed()};
    report.incident = write_incident(directory.incidents(), incident, clock).string();
  } catch (const std::exception& error) {
    log_warn("{}", error.what());
  }
}

}  // namespace

JobReport run_job(const JobOptions& options, const Clock& clock) {
  const Nanoseconds begin = clock.now();
  const RunDirectory directory(options.run_dir);
  const auto lock = directory.take();
  JobReport report;
  report.run_dir = directory.path().string();
  report.steps = options.file.run.steps;
  const StartPoint start = find_start(directory, options.file, options.from_scratch, options.data);
  report.last_checkpoint = start.checkpoint;
  if (!start.checkpoint.empty()) report.resumed_from = start.step;
  if (start.finished) {
    report.reason = "finished";
    report.step = start.step;
    return report;
  }
  prepare_journal(directory, start, options.file);
  const std::string config = spec::to_yaml(options.file);
  io::write_atomic(directory.run_file(), config);
  io::make_folders(directory.checkpoints());
  if (!start.checkpoint.empty()) log_info("resuming from {} (step {})", start.checkpoint, start.step);

  SignalWatch signals;
  LoopOptions loop_options;
  loop_options.machine = machine_options(options.file);
  loop_options.persister = {directory.checkpoints(), config, options.file.checkpoint.keep};
  loop_options.first_step = start.step;
  loop_options.num_steps = options.file.run.steps;
  loop_options.tensorboard = options.file.observe.tensorboard;
  loop_options.progress = options.progress;
  loop_options.progress_out = options.progress_out;
  loop_options.on_step = options.on_step;
  if (options.on_step) options.on_step(start.step);
  JobLoop loop(loop_options, directory, start_workers(worker_options(options, directory, start)), signals,
               clock);
  loop.run();

  const auto outcome = loop.outcome();
  report.exit_code = outcome.exit_code;
  report.reason = outcome.reason;
  report.message = outcome.message;
  report.step = std::max(outcome.step, loop.last_step());
  if (!loop.last_checkpoint().empty()) report.last_checkpoint = loop.last_checkpoint();
  if (outcome.reason == "failed") write_incident_page(directory, loop, clock, report);
  report.seconds = to_seconds(clock.now() - begin);
  return report;
}

std::string JobReport::to_json() const {
  const nlohmann::ordered_json page{
      {"exit_code", exit_code}, {"reason", reason},   {"message", message},
      {"step", step},           {"steps", steps},     {"resumed_from", resumed_from},
      {"seconds", seconds},     {"run_dir", run_dir}, {"last_checkpoint", last_checkpoint},
      {"incident", incident}};
  return json_text(page);
}

std::string JobReport::to_string() const {
  const std::string checkpoint = last_checkpoint.empty() ? "no checkpoint" : "checkpoint " + last_checkpoint;
  if (reason == "finished") {
    return fmt::format("{} is finished: step {} of {}, {}. To go on, raise run.steps", run_dir, step, steps,
                       checkpoint);
  }
  const char* then = reason == "stopped" ? "; the same command goes on" : "";
  return fmt::format("{}: step {} of {} in {}, {}{}", reason, step, steps, format_seconds(seconds),
                     checkpoint, then);
}

}  // namespace chiliad::supervise
