#include <fmt/core.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/worker/verbs.h"
#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/base/rng.h"
#include "chiliad/checkpoint/reader.h"
#include "chiliad/device/tensor.h"
#include "chiliad/generate/inference_model.h"
#include "chiliad/generate/picture_grid.h"
#include "chiliad/generate/sample.h"
#include "chiliad/image/encode.h"
#include "chiliad/io/file.h"
#include "chiliad/ops/cpu/parallel.h"
#include "chiliad/spec/shape_stages.h"

namespace chiliad::worker {
namespace {

struct GenerateArguments {
  std::string checkpoint;
  std::vector<std::string> prompts;
  std::string prompt_file;
  std::string out = "grid.png";
  std::string size;
  int count = 1;
  int steps = 30;
  double guidance = 2.0;
  std::string guidance_form = "from_unconditional";
  int64_t guidance_channels = 0;
  std::optional<double> embedded_guidance;
  uint64_t seed = 1;
  std::string solver = "auto";
  std::vector<std::string> overrides;
  int columns = 8;
  int zoom = 4;
  int threads = 2;
  bool json = false;
};

std::vector<std::string> read_prompts(const GenerateArguments& arguments) {
  std::vector<std::string> prompts = arguments.prompts;
  if (!arguments.prompt_file.empty()) {
    std::ifstream file(arguments.prompt_file);
    if (!file || std::filesystem::is_directory(arguments.prompt_file))
      throw InvalidInput(arguments.prompt_file, "cannot be opened");
    for (std::string line; std::getline(file, line);) {
      if (!line.empty()) prompts.push_back(line);
    }
  }
  if (prompts.empty())
    throw InvalidInput("--prompt", "expected at least one prompt (or --prompts FILE with one a line)");
  return prompts;
}

std::pair<int32_t, int32_t> parse_size(const std::string& text, const spec::RunFile& run) {
  if (text.empty()) {
    const int64_t unit = spec::token_pixels(run.model);
    const auto side =
        static_cast<int32_t>(std::max(unit, spec::last_stage(run.data).resolution / unit * unit));
    return {side, side};
  }
  int width = 0;
  int height = 0;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%5dx%5d%c", &width, &height, &rest) != 2 || width <= 0 || height <= 0 ||
      width > 4096 || height > 4096) {
    throw InvalidInput("--size", fmt::format("expected WIDTHxHEIGHT up to 4096, got '{}'", text));
  }
  return {width, height};
}

void show_progress(int64_t done, int64_t total) {
  if (::isatty(STDERR_FILENO) == 0) return;
  fmt::print(stderr, "\r{} of {} pictures{}", done, total, done == total ? "\n" : "");
}

generate::Solver solver_of(const std::string& name) {
  if (name == "euler") return generate::Solver::kEuler;
  if (name == "dpm") return generate::Solver::kDpm;
  return name == "ddim" ? generate::Solver::kDdim : generate::Solver::kAuto;
}

/// What would be found only after all pictures are made.
void check_before(const GenerateArguments& arguments) {
  namespace fs = std::filesystem;
  const fs::path out = arguments.out;
  if (fs::exists(out) && !fs::is_regular_file(out))
    throw InvalidInput(
        "--out", fmt::format("expected the name of a file, got {}, a folder or a device", out.string()));
  if (out.has_parent_path() && !fs::is_directory(out.parent_path()))
    throw InvalidInput("--out",
                       fmt::format("expected a name in a folder that is there, got {}", out.string()));
  if (!std::isfinite(arguments.guidance) || !std::isfinite(arguments.embedded_guidance.value_or(0.0)))
    throw InvalidInput("--guidance", "expected a number, got one that is not finite");
}

void check_canvas(const GenerateArguments& arguments, const std::vector<generate::Request>& requests) {
  constexpr int64_t kMostValues = int64_t{1} << 30;
  int64_t values = 0;
  for (const auto& request : requests)
    values += int64_t{3} * request.width * request.height * arguments.zoom * arguments.zoom;
  if (values <= kMostValues) return;
  throw InvalidInput("--zoom",
                     fmt::format("expected a grid of at most {} bytes, got {} for {} pictures at zoom "
                                 "{}. Ask for fewer, or for a smaller zoom",
                                 kMostValues, values, requests.size(), arguments.zoom));
}

int run_generate(const GenerateArguments& arguments) {
  check_before(arguments);
  device::set_compute_threads(arguments.threads);
  const auto prompts = read_prompts(arguments);
  const auto checkpoint = checkpoint::open_newest(arguments.checkpoint);
  const generate::InferenceModel model(checkpoint, arguments.overrides);
  ops::cpu::set_fp32_products(model.run().parallel.products);  // as in training: the same rounding
  const auto maker = generate::make_picture_maker(
      model.run(), [&](layers::Carry carry) { return model.predict(std::move(carry)); });
  const auto [width, height] = parse_size(arguments.size, model.run());
  std::vector<generate::Request> requests;
  for (const auto& prompt : prompts) {
    for (int i = 0; i < arguments.count; ++i) {
      requests.push_back({prompt, width, height, mix64(arguments.seed ^ mix64(requests.size()))});
    }
  }
  check_canvas(arguments, requests);
  generate::SamplerOptions options;
  options.steps = arguments.steps;
  options.guidance = {.scale = arguments.guidance,
                      .form = generate::guidance_form(arguments.guidance_form),
                      .channels = arguments.guidance_channels};
  options.embedded_guidance = arguments.embedded_guidance;
  options.solver = solver_of(arguments.solver);
  const auto pictures = generate::sample(*maker, requests, options, show_progress);
  const auto grid = generate::make_grid(pictures, arguments.columns, arguments.zoom);
  io::write_atomic(arguments.out, image::encode_png(grid));
  if (arguments.json) {
    const nlohmann::json result{
        {"out", arguments.out},      {"pictures", pictures.size()},  {"width", width},    {"height", height},
        {"step", checkpoint.step()}, {"averaged", model.averaged()}, {"prompts", prompts}};
    fmt::print("{}\n", json_text(result));
  } else {
    fmt::print("{} pictures of {}x{} from step {}{} in {}\n", pictures.size(), width, height,
               checkpoint.step(), model.averaged() ? " (moving average)" : "", arguments.out);
  }
  return 0;
}

}  // namespace

void add_generate(cli::Verb& app) {
  auto arguments = std::make_shared<GenerateArguments>();  // shared with the callback until the program ends
  cli::Verb verb =
      app.add("generate",
              "pictures from prompts\nExample: chiliad generate runs/demo --prompt 'A frog.' --out grid.png");
  verb.option("checkpoint", arguments->checkpoint,
              "a step-N.gG folder, or a run directory (its newest good checkpoint)")
      .required();
  verb.option("--prompt", arguments->prompts, "text; may be given several times").repeats();
  verb.option("--prompts", arguments->prompt_file, "file with a prompt a line");
  verb.option("--out", arguments->out, "PNG to write").show_default();
  verb.option("--size", arguments->size,
              "WIDTHxHEIGHT, multiples of the patch; default: the run's resolution, square");
  verb.option("--count", arguments->count, "pictures a prompt").within(1, 1024).show_default();
  verb.option("--steps", arguments->steps, "steps of the solver").within(1, 1000).show_default();
  verb.option("--solver", arguments->solver,
              "auto: euler for flow matching, dpm (DPM-Solver++ 2M) for discrete diffusion; also ddim")
      .one_of({"auto", "euler", "dpm", "ddim"})
      .show_default();
  verb.option("--set", arguments->overrides,
              "section.key=value over the run's own file, for paths that moved")
      .repeats();
  verb.option("--guidance", arguments->guidance,
              "classifier-free guidance; none at 1, with form from_conditional at 0")
      .within(0.0, 100.0)
      .show_default();
  verb.option("--guidance-form", arguments->guidance_form,
              "c with and u without the prompt: u + guidance * (c - u), or c + guidance * (c - u)")
      .one_of({"from_unconditional", "from_conditional"})
      .show_default();
  verb.option("--guidance-channels", arguments->guidance_channels,
              "first channels of the latents that are guided (DiT: 3); 0: all")
      .within(0, 4096)
      .show_default();
  verb.option("--embedded-guidance", arguments->embedded_guidance,
              "the scale that a network with a guidance input (Flux.1 dev: 3.5) is told; default: that of "
              "its training")
      .within(0.0, 100.0);
  verb.option("--seed", arguments->seed, "of the noise").show_default();
  verb.option("--columns", arguments->columns, "pictures a row of the grid").within(1, 64).show_default();
  verb.option("--zoom", arguments->zoom, "screen pixels a pixel").within(1, 64).show_default();
  verb.option("--threads", arguments->threads, "intra-op threads").within(1, 256).show_default();
  verb.flag("--json", arguments->json, "print the result as JSON");
  verb.run([arguments] { return run_generate(*arguments); });
}

}  // namespace chiliad::worker
