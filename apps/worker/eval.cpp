#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/worker/verbs.h"
#include "chiliad/checkpoint/reader.h"
#include "chiliad/device/tensor.h"
#include "chiliad/generate/inference_model.h"
#include "chiliad/generate/picture_grid.h"
#include "chiliad/generate/retrieval.h"
#include "chiliad/image/encode.h"
#include "chiliad/io/file.h"
#include "chiliad/loader/run_inputs.h"
#include "chiliad/ops/cpu/parallel.h"

namespace chiliad::worker {
namespace {

struct EvalArguments {
  std::string checkpoint;
  std::string grid;
  int captions = 64;
  int steps = 30;
  double guidance = 2.0;
  uint64_t seed = 1;
  int threads = 2;
  std::vector<std::string> overrides;
  bool json = false;
};

int run_eval(const EvalArguments& arguments) {
  device::set_compute_threads(arguments.threads);
  const auto checkpoint = checkpoint::open_newest(arguments.checkpoint);
  const generate::InferenceModel model(checkpoint, arguments.overrides);
  ops::cpu::set_fp32_products(model.run().parallel.products);  // as in training: the same rounding
  const auto maker = generate::make_picture_maker(
      model.run(), [&](layers::Carry carry) { return model.predict(std::move(carry)); });
  const auto& run = model.run();
  const auto index = loader::open_index(run.data);
  // Which captions are drawn does not depend on their lengths.
  const stepplan::Plan plan(index, run.data, run.run.seed, [](uint32_t, uint32_t) { return 1U; });
  generate::RetrievalOptions options;
  options.num_captions = arguments.captions;
  options.seed = arguments.seed;
  options.sampler.steps = arguments.steps;
  options.sampler.guidance.scale = arguments.guidance;
  const auto report = generate::evaluate_retrieval(*maker, index, plan, options, {});
  if (!arguments.grid.empty()) {
    io::write_atomic(arguments.grid, image::encode_png(generate::make_grid(report.generated, 8, 4)));
  }
  if (arguments.json) {
    const nlohmann::json result{{"step", checkpoint.step()},
                                {"captions", report.num_captions},
                                {"training_pictures", report.num_pictures},
                                {"top10", report.top},
                                {"top10_shuffled", report.top_shuffled},
                                {"asked", report.captions}};
    fmt::print("{}\n", result.dump());
  } else {
    fmt::print(
        "step {}: for {:.1f} % of {} seen captions the picture made has one of that caption among its 10 "
        "nearest of {} "
        "training pictures (shuffled prompts: {:.1f} %)\n",
        checkpoint.step(), 100.0 * report.top, report.num_captions, report.num_pictures,
        100.0 * report.top_shuffled);
  }
  return 0;
}

}  // namespace

void add_eval(CLI::App& app, int& code) {
  auto arguments = std::make_shared<EvalArguments>();  // shared with the callback until the program ends
  auto* verb = app.add_subcommand(
      "eval", "does a checkpoint make what it was shown?\nExample: chiliad eval runs/demo --json");
  verb->add_option("checkpoint", arguments->checkpoint,
                   "a step-N.gG folder, or a run directory (its newest good checkpoint)")
      ->required();
  verb->add_option("--captions", arguments->captions, "seen captions to ask for")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  verb->add_option("--grid", arguments->grid, "PNG with the pictures made");
  verb->add_option("--steps", arguments->steps, "steps of the solver")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  verb->add_option("--guidance", arguments->guidance, "classifier-free guidance; 1: none")
      ->capture_default_str();
  verb->add_option("--seed", arguments->seed, "of captions and noise")->capture_default_str();
  verb->add_option("--threads", arguments->threads, "intra-op threads")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  verb->add_option("--set", arguments->overrides,
                   "section.key=value over the run's own file, for paths that moved")
      ->take_all();
  verb->add_flag("--json", arguments->json, "print the result as JSON");
  verb->callback([arguments, &code] { code = run_eval(*arguments); });
}

}  // namespace chiliad::worker
