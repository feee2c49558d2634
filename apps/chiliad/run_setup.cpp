#include "apps/chiliad/run_setup.h"

#include <fmt/chrono.h>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <unistd.h>
#include <ctime>
#include <iostream>

#include "apps/chiliad/block_cache.h"
#include "chiliad/base/clock.h"
#include "chiliad/base/error.h"
#include "chiliad/base/log.h"
#include "chiliad/dataset/build_index.h"
#include "chiliad/dataset/conversation_columns.h"
#include "chiliad/observe/terminal_progress.h"
#include "chiliad/weights/configs/scheduler.h"
#include "chiliad/weights/start_weights.h"
#include "chiliad/weights/weight_source.h"

namespace chiliad::cli {

void add_overrides(Verb& verb, RunArguments& arguments) {
  verb.option("--set", arguments.overrides, "section.key=value, over the run file; may be repeated")
      .repeats();
}

spec::RunFile read_run(const RunArguments& arguments) {
  auto overrides = arguments.overrides;
  if (arguments.nproc > 0) overrides.push_back(fmt::format("parallel.nproc={}", arguments.nproc));
  auto file = spec::read_run_file(arguments.run_file, overrides);
  if (file.run.dir.empty()) {
    file.run.dir =
        (std::filesystem::path("runs") / std::filesystem::path(arguments.run_file).stem()).string();
  }
  return file;
}

std::string compare_objective(const spec::RunFile& file, const std::filesystem::path& from) {
  if (!spec::is_latent_diffusion(file.model)) return "";
  const auto scheduler = weights::find_scheduler_config(from);
  if (scheduler.empty()) return "no scheduler_config.json was compared with the objective";
  const auto differences = weights::scheduler_differences(scheduler, file.objective);
  if (differences.empty()) return "its scheduler_config.json says what the objective says";
  const std::string text = fmt::format("{}, in {}: these weights were trained with another objective",
                                       fmt::join(differences, "; "), scheduler.string());
  log_warn("warning: {}", text);
  return text;
}

std::string check_weights(const spec::RunFile& file) {
  if (file.model.weights.empty()) return "";
  if (!std::filesystem::exists(file.model.weights)) {
    throw InvalidInput("model.weights",
                       fmt::format("expected a folder or file of weights, got {}, which is not "
                                   "there. Paths are from the current folder",
                                   file.model.weights));
  }
  const auto source = weights::WeightSource::open(file.model.weights);
  const bool compared = weights::check_start_weights(source, file.model);
  const std::string objective = compare_objective(file, file.model.weights);
  return fmt::format(
      "{}: {} tensors; {}{}{}", source.path().string(), source.tensors().size(),
      compared ? "its config.json says what the run file says"
               : "no config.json was compared, so options that fit every tensor are as the run file has them",
      objective.empty() ? "" : "; ", objective);
}

void check_trainable(const spec::RunFile& file) {
  if (!spec::reads_conversations(file.vision)) return;
  throw InvalidInput("vision.template",
                     fmt::format("expected none for training, got {}: conversations are planned, loaded and "
                                 "shown (data plan, data show, the Python loader), not trained on yet",
                                 file.vision.chat_template));
}

std::string now_text() {
  const auto wall = static_cast<std::time_t>(to_seconds(SystemClock().wall()));
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(wall));
}

void make_token_columns(const spec::RunFile& file, const index::Index& index, const loader::RunInputs& inputs,
                        bool quiet) {
  const SystemClock clock;
  const auto cache = join_block_cache(file, index);
  observe::TerminalProgress progress(std::cerr, observe::progress_style(quiet, STDERR_FILENO), clock,
                                     {.label = "counting tokens", .bytes = true});
  bool shown = false;
  const auto show = [&](int64_t done, int64_t total) {
    shown = true;
    progress.update(done, total, "");
  };
  if (inputs.conversations != nullptr) {
    const auto& [encoder, view] = *inputs.conversations;
    dataset::build_conversation_columns(index, *encoder, view, show, inputs.source.get());
  } else if (inputs.documents != nullptr) {
    dataset::build_document_columns(index, *inputs.documents, show, inputs.source.get());
  } else if (file.model.family == "pixel_dit") {
    dataset::build_token_columns(index, file.model.text_max_tokens, show, inputs.source.get());
  }
  if (shown) progress.finish();
}

stepplan::Plan open_plan(const spec::RunFile& file, const index::Index& index,
                         const loader::RunInputs& inputs, bool quiet) {
  const SystemClock clock;
  observe::TerminalProgress progress(std::cerr, observe::progress_style(quiet, STDERR_FILENO), clock,
                                     {.label = "planning", .unit = "sample"});
  bool shown = false;
  auto plan =
      loader::open_plan(file, index, inputs, stepplan::PlanPart::kTraining, [&](int64_t done, int64_t total) {
        shown = true;
        progress.update(done, total, "");
      });
  if (shown) progress.finish();
  const auto end = plan.num_steps();
  if (!end || file.run.steps <= *end) return plan;
  throw InvalidInput(
      "run.steps",
      fmt::format("expected at most {}, after which all data.sources have shown their epochs, got {}. "
                  "Lower it, or raise the epochs of a source",
                  *end, file.run.steps));
}

}  // namespace chiliad::cli
