#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "apps/worker/verbs.h"
#include "chiliad/base/json_text.h"
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
    fmt::print("{}\n", json_text(result));
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

void add_eval(cli::Verb& app) {
  auto arguments = std::make_shared<EvalArguments>();  // shared with the callback until the program ends
  cli::Verb verb =
      app.add("eval", "does a checkpoint make what it was shown?\nExample: chiliad eval runs/demo --json");
  verb.option("checkpoint", arguments->checkpoint,
              "a step-N.gG folder, or a run directory (its newest good checkpoint)")
      .required();
  verb.option("--captions", arguments->captions, "seen captions to ask for").within(1, 100000).show_default();
  verb.option("--grid", arguments->grid, "PNG with the pictures made");
  verb.option("--steps", arguments->steps, "steps of the solver").within(1, 1000).show_default();
  verb.option("--guidance", arguments->guidance, "classifier-free guidance; 1: none").show_default();
  verb.option("--seed", arguments->seed, "of captions and noise").show_default();
  verb.option("--threads", arguments->threads, "intra-op threads").within(1, 256).show_default();
  verb.option("--set", arguments->overrides,
              "section.key=value over the run's own file, for paths that moved")
      .repeats();
  verb.flag("--json", arguments->json, "print the result as JSON");
  verb.run([arguments] { return run_eval(*arguments); });
}

}  // namespace chiliad::worker
