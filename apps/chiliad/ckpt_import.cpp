#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/chiliad/run_setup.h"
#include "apps/chiliad/verbs.h"
#include "chiliad/base/clock.h"
#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/base/units.h"
#include "chiliad/checkpoint/import.h"
#include "chiliad/checkpoint/reader.h"
#include "chiliad/observe/terminal_progress.h"
#include "chiliad/supervise/launch/run_directory.h"
#include "chiliad/weights/start_weights.h"

namespace chiliad::cli {
namespace {

struct Arguments {
  std::string from;
  RunArguments run;
};

/// The state of the run before its first step, as the trainer writes it.
std::string first_state(const spec::RunFile& file, const Arguments& arguments) {
  const auto index = loader::open_index(file.data);
  const auto inputs = loader::open_inputs(file, index);
  make_token_columns(file, index, inputs, arguments.run.quiet);
  const auto plan = loader::open_plan(file, index, inputs);
  const nlohmann::json state{
      {"step", 0},
      {"updates", 0},
      {"items_seen", 0},
      {"bad_seen", 0},
      {"seed", file.run.seed},
      {"cursor", parse_json<nlohmann::json>(plan.cursor(0, stepplan::Journal()).to_json())},
      {"journal", ""}};
  return json_text(state);
}

void check_no_checkpoints(const supervise::RunDirectory& directory) {
  if (!std::filesystem::is_directory(directory.checkpoints())) return;
  const auto there = checkpoint::list(directory.checkpoints());
  if (there.empty()) return;
  throw InvalidInput(
      directory.path().string(),
      fmt::format("expected a run without checkpoints, got one with step {}. Give the new run its "
                  "own directory with --set run.dir=DIR, or remove that one",
                  there.front().step));
}

int run(const Arguments& arguments) {
  const auto file = read_run(arguments.run);
  const auto source = weights::WeightSource::open(arguments.from);
  const bool compared = weights::check_start_weights(source, file.model);
  static_cast<void>(compare_objective(file, arguments.from));
  const supervise::RunDirectory directory(file.run.dir);
  const auto lock = directory.take();
  check_no_checkpoints(directory);
  const std::string state = first_state(file, arguments);
  io::make_folders(directory.checkpoints());
  const SystemClock clock;
  observe::TerminalProgress progress(std::cerr, observe::progress_style(arguments.run.quiet, STDERR_FILENO),
                                     clock, {.label = "importing", .bytes = true});
  const auto report =
      checkpoint::import_weights(source, file, state, directory.checkpoints(),
                                 [&](int64_t done, int64_t total) { progress.update(done, total, ""); });
  progress.finish();
  if (arguments.run.json) {
    fmt::print("{}\n", json_text(nlohmann::ordered_json{{"checkpoint", report.path.string()},
                                                        {"from", source.path().string()},
                                                        {"tensors", report.num_tensors},
                                                        {"bytes", report.num_bytes},
                                                        {"config_compared", compared}}));
    return 0;
  }
  fmt::print("{}: {} tensors of {}, {} with moments and averages{}\n", report.path.string(),
             report.num_tensors, source.path().string(), format_bytes(report.num_bytes),
             compared ? "; config.json says what the run file says" : "");
  fmt::print("`chiliad train {}`{} goes on from it\n", arguments.run.run_file,
             arguments.run.overrides.empty() ? "" : " with the same --set options");
  return 0;
}

}  // namespace

void add_ckpt_import(Verb& parent) {
  auto arguments = std::make_shared<Arguments>();  // shared by the parser and the action, until the end
  Verb verb =
      parent.add("import", "Makes a checkpoint of step 0 from published weights (Hugging Face layout)");
  verb.option("FOLDER", arguments->from, "Folder, .safetensors file or index.json of the weights").required();
  verb.option("--run", arguments->run.run_file, "Run file of the run that goes on from them").required();
  add_overrides(verb, arguments->run);
  verb.flag("--quiet", arguments->run.quiet, "No progress");
  verb.flag("--json", arguments->run.json, "Prints the result as one JSON object");
  verb.footer(
      "Example: chiliad ckpt import pixart-model --run run.yaml && chiliad train run.yaml\n"
      "Every tensor must be explained, and every parameter there in its shape; other types become fp32.");
  verb.run([arguments] { return run(*arguments); });
}

}  // namespace chiliad::cli
