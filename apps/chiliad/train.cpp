#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/chiliad/block_cache.h"
#include "apps/chiliad/formats.h"
#include "apps/chiliad/run_setup.h"
#include "apps/chiliad/verbs.h"
#include "chiliad/base/clock.h"
#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/base/log.h"
#include "chiliad/base/units.h"
#include "chiliad/checkpoint/reader.h"
#include "chiliad/io/file.h"
#include "chiliad/observe/terminal_progress.h"
#include "chiliad/planner/recompute_choice.h"
#include "chiliad/planner/state_memory.h"
#include "chiliad/spec/layer_table.h"
#include "chiliad/spec/shape_stages.h"
#include "chiliad/stepplan/work_model.h"
#include "chiliad/supervise/launch/job.h"
#include "chiliad/supervise/launch/run_directory.h"
#include "chiliad/supervise/launch/workers.h"

namespace chiliad::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  RunArguments run;
  bool check = false;
  bool from_scratch = false;
};

void print_json(const nlohmann::ordered_json& page) {
  fmt::print("{}\n", json_text(page));
}

/// The newest committed checkpoint, unverified: `--check` is quick.
std::string newest_checkpoint(const fs::path& run_dir) {
  if (!fs::is_directory(run_dir / "checkpoints")) return "";
  for (const auto& entry : checkpoint::list(run_dir / "checkpoints")) {
    if (entry.committed && entry.problem.empty()) return entry.path.string();
  }
  return "";
}

/// Model FLOPs of one step, forward and backward.
double step_flops(const stepplan::Step& step, const stepplan::Plan& plan, const spec::LayerTable& table,
                  int64_t side) {
  double flops = 0.0;
  for (const auto& item : step.items) {
    if (plan.packs_documents()) {
      flops += table.step_work({1, 0, item.num_tokens}).flops();
      continue;
    }
    const auto bucket = plan.buckets()[static_cast<size_t>(item.bucket)];
    flops += table.step_work({1, (bucket.width / side) * (bucket.height / side), item.num_tokens}).flops();
  }
  return flops;
}

/// What was found before the plan.
struct CheckNotes {
  std::string weights;
  std::string not_encoded;  ///< why the columns of frozen encoders cannot be opened; empty: they can
  bool no_encoder = false;  ///< because an encoder is not there
};

/// A run file can be checked before its data is encoded; what the columns say about the model cannot be
/// wrong.
loader::RunInputs inputs_to_check(const spec::RunFile& file, const index::Index& index, CheckNotes& notes) {
  try {
    return loader::open_inputs(file, index);
  } catch (const InvalidInput& error) {
    if (!spec::is_latent_diffusion(file.model) || error.place().starts_with("model.")) throw;
    notes.not_encoded = error.what();
    notes.no_encoder = error.place().starts_with("encoders.");
  }
  return {};
}

std::string before_training(const CheckNotes& notes) {
  if (notes.not_encoded.empty()) return "";
  if (notes.no_encoder)
    return " Before it can train, an encoder that it names must be there, and its data be encoded: chiliad "
           "encode RUN.yaml";
  return " Before it can train, its data must be encoded: chiliad encode RUN.yaml";
}

int check_run(const Arguments& arguments, const spec::RunFile& file, const index::Index& index,
              const loader::RunInputs& inputs, const CheckNotes& notes) {
  const auto plan = open_plan(file, index, inputs, true);
  const auto& coverage = plan.coverage();
  const auto first = plan.select(0, stepplan::Journal());
  const auto packed = stepplan::pack(
      first, plan.buckets(),
      loader::pack_options(file, spec::rates_of(file.parallel), static_cast<int>(file.parallel.dp())));
  const auto table = spec::make_layer_table(file.model);
  const auto memory = planner::state_memory(table, file);
  const auto recompute =
      planner::choose_recompute(table, file, stepplan::largest_batches(file.model, file.data));
  const double flops = step_flops(first, plan, table, spec::token_pixels(file.model));
  const std::string resume = newest_checkpoint(file.run.dir);
  if (!resume.empty() && !arguments.from_scratch) {
    supervise::check_resumable(checkpoint::Checkpoint::open(resume), file, file.run.dir,
                               index.manifest().digest.hex());
  }
  const double epochs = static_cast<double>(file.run.steps) / static_cast<double>(plan.steps_per_epoch());
  if (arguments.run.json) {
    print_json({{"run_dir", file.run.dir},
                {"resume", resume},
                {"steps", file.run.steps},
                {"steps_per_epoch", plan.steps_per_epoch()},
                {"items_per_epoch", plan.items_per_epoch()},
                {"coverage",
                 {{"in_index", coverage.in_index},
                  {"in_order", coverage.in_order},
                  {"bad_image", coverage.bad_image},
                  {"no_caption", coverage.no_caption},
                  {"aspect", coverage.aspect},
                  {"too_small", coverage.too_small},
                  {"over_limit", coverage.over_limit},
                  {"held_out", coverage.held_out}}},
                {"buckets", plan.buckets().size()},
                {"nproc", file.parallel.nproc},
                {"encoded", notes.not_encoded.empty()},
                {"layout",
                 {{"dp_replicate", file.parallel.dp_replicate()},
                  {"dp_shard", file.parallel.dp_shard},
                  {"tp", file.parallel.tp}}},
                {"imbalance", packed.imbalance()},
                {"params", table.num_params()},
                {"step_flops", flops},
                {"rank_bytes",
                 {{"weights", memory.weights},
                  {"gradients", memory.gradients},
                  {"moments", memory.moments},
                  {"average", memory.average},
                  {"buffers", memory.buffers},
                  {"snapshots", memory.snapshots},
                  {"activations", recompute.activations.peak},
                  {"peak", recompute.peak()}}},
                {"recompute", recompute.to_string()}});
    return 0;
  }
  const auto row = [](const char* name, const std::string& value) { fmt::print("{:<10} {}\n", name, value); };
  row("run",
      fmt::format("{}, {}", file.run.dir, resume.empty() ? "from the beginning" : "resumes from " + resume));
  if (!notes.weights.empty()) row("weights", notes.weights);
  if (!notes.not_encoded.empty()) row("encoders", notes.not_encoded);
  row("steps", fmt::format("{} of {} items ({:.2f} epochs of {} steps)", file.run.steps, file.data.batch,
                           epochs, plan.steps_per_epoch()));
  row("data",
      fmt::format(
          "{} of {} samples; left out: {} damaged, {} without caption, {} by aspect, {} too small, {} "
          "over the limit, {} held out",
          coverage.in_order, coverage.in_index, coverage.bad_image, coverage.no_caption, coverage.aspect,
          coverage.too_small, coverage.over_limit, coverage.held_out));
  if (!plan.packs_documents()) {
    std::string shapes;
    const auto stages = spec::stage_options(file.data);
    for (size_t s = 0; s < stages.size(); ++s) {
      if (s > 0) shapes += fmt::format("; from step {} ", file.data.stages[s - 1].from);
      shapes += fmt::format("{} buckets of about {}x{}", stepplan::make_buckets(stages[s]).size(),
                            stages[s].resolution, stages[s].resolution);
    }
    row("shapes", shapes);
  } else {
    row("shapes", fmt::format("rows of at most {} tokens, documents of at most {}; {} cut",
                              file.data.micro_batch_tokens, file.data.sequence_length, coverage.cut));
  }
  row("layout",
      fmt::format("{} ranks of {} threads, {}: dp_replicate {} x dp_shard {} x tp {}; first step: {} slots, "
                  "imbalance {:.3f}",
                  file.parallel.nproc, file.parallel.threads, file.parallel.compute,
                  file.parallel.dp_replicate(), file.parallel.dp_shard, file.parallel.tp,
                  packed.slots.front().size(), packed.imbalance()));
  row("model",
      fmt::format("{} parameters, {:.3g} GFLOP in the first step", table.num_params(), flops * 1e-9));
  row("memory",
      fmt::format(
          "{} a rank at most: weights {}, gradients {}, moments {}, average {}, buffers {}, activations "
          "{}; beside it snapshots {}",
          format_bytes(recompute.peak()), format_bytes(memory.weights), format_bytes(memory.gradients),
          format_bytes(memory.moments), format_bytes(memory.average), format_bytes(memory.buffers),
          recompute.known ? format_bytes(recompute.activations.peak) : "not predicted for this family",
          format_bytes(memory.snapshots)));
  row("recompute", fmt::format("{}: layers {}, {:.1f} % more products", file.parallel.recompute,
                               recompute.to_string(), 100.0 * recompute.extra_flops));
  fmt::print("The run file is good.{}\n", before_training(notes));
  return 0;
}

int run(const Arguments& arguments) {
  const SystemClock clock;
  auto file = read_run(arguments.run);
  check_trainable(file);
  if (arguments.check) assume_formats(file);
  // A run that resumes has its own weights.
  const bool starts = arguments.from_scratch || newest_checkpoint(file.run.dir).empty();
  CheckNotes notes;
  if (starts) notes.weights = check_weights(file);
  const auto index = loader::open_index(file.data);
  std::optional<stepplan::Plan> plan;  // of the thread that fetches ahead, which ends with the cache
  const auto cache =
      arguments.check ? join_block_cache(file, index) : own_block_cache(file, index, file.parallel.nproc);
  const auto inputs =
      arguments.check ? inputs_to_check(file, index, notes) : loader::open_inputs(file, index);
  make_token_columns(file, index, inputs, arguments.run.quiet);
  if (arguments.check) return check_run(arguments, file, index, inputs, notes);
  // Before there are ranks, which would all make the same files.
  if (!index.is_loaded() || !file.data.sources.empty())
    static_cast<void>(open_plan(file, index, inputs, arguments.run.quiet));
  supervise::JobOptions options;
  options.worker = supervise::worker_program();
  options.run_dir = file.run.dir;
  options.data = index.manifest().digest.hex();
  options.from_scratch = arguments.from_scratch;
  options.progress = observe::progress_style(arguments.run.quiet, STDERR_FILENO);
  options.progress_out = &std::cerr;
  if (fs::exists(options.run_dir) && !fs::is_directory(options.run_dir)) {
    throw InvalidInput(
        "run.dir",
        fmt::format("expected a folder, got the file {}. Choose another one with --set run.dir=DIR",
                    file.run.dir));
  }
  io::make_folders(options.run_dir);
  start_logging({.level = arguments.run.quiet ? LogLevel::kWarn : LogLevel::kInfo,
                 .prefix = "",
                 .json_path = (options.run_dir / "log.jsonl").string()});
  settle_formats(file, starts);
  options.file = file;
  if (cache != nullptr && !spec::is_latent_diffusion(file.model)) {
    plan.emplace(loader::open_plan(file, index, inputs));
    options.on_step = [&, planned = false](int64_t step) mutable {
      if (!planned) plan_ahead(*cache, file, index, *plan, step);
      planned = true;
      cache->reached(step);
    };
  }
  const auto report = supervise::run_job(options, clock);
  if (!report.message.empty()) {
    fmt::print(stderr, "error: {}{}\n", report.message,
               report.incident.empty() ? "" : " (see " + report.incident + ")");
  }
  if (arguments.run.json) {
    fmt::print("{}\n", report.to_json());
  } else if (!arguments.run.quiet || report.exit_code != 0) {
    fmt::print("{}\n", report.to_string());
  }
  return report.exit_code;
}

}  // namespace

void add_train(Verb& parent) {
  auto arguments = std::make_shared<Arguments>();  // shared by the parser and the action, until the end
  Verb verb = parent.add("train", "Trains, or resumes from the newest good checkpoint of the run directory");
  verb.option("RUN", arguments->run.run_file, "Run file (see `chiliad docs run-file`)").required();
  verb.option("--nproc", arguments->run.nproc, "Worker processes on this machine (parallel.nproc)")
      .within(1, 1024);
  add_overrides(verb, arguments->run);
  verb.flag("--check", arguments->check, "Validates everything and shows the plan without training");
  verb.flag("--from-scratch", arguments->from_scratch,
            "Sets an earlier run of this directory aside and begins anew");
  verb.flag("--json", arguments->run.json, "Prints the result as one JSON object");
  verb.flag("--quiet", arguments->run.quiet, "Shows no progress, only warnings and errors");
  verb.footer(
      "Example: chiliad train run.yaml --nproc 2 --set optimizer.lr=3e-4\n"
      "The same command again resumes. SIGINT or SIGTERM saves and leaves; a second one kills.");
  verb.run([arguments] { return run(*arguments); });
}

}  // namespace chiliad::cli
