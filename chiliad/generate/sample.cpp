#include "chiliad/generate/sample.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/device/tensor.h"
#include "chiliad/generate/ddim.h"
#include "chiliad/generate/dpm_solver.h"
#include "chiliad/generate/euler.h"
#include "chiliad/generate/guidance.h"
#include "chiliad/objective/diffusion_objective.h"
#include "chiliad/objective/flow.h"

namespace chiliad::generate {
namespace {

/// A sampler, and what it wants of the network's output.
struct Walk {
  std::unique_ptr<Sampler> sampler;
  double time_scale = 1.0;  ///< of its times
};

[[noreturn]] void refuse_solver(const char* expected, const char* got, const spec::RunFile& run) {
  throw InvalidInput("--solver",
                     fmt::format("expected {} for objective.kind {}, got {}. Choose one of them, or leave it "
                                 "out",
                                 expected, run.objective.kind, got));
}

Walk flow_walk(const spec::RunFile& run, const SamplerOptions& options, int64_t tokens) {
  const double shift = objective::flow_shift(run.objective, tokens);
  if (options.solver == Solver::kAuto || options.solver == Solver::kEuler)
    return {std::make_unique<EulerSampler>(euler_times(options.steps, shift)), 1.0};
  if (options.solver != Solver::kDpm) refuse_solver("euler or dpm", "ddim", run);
  const FlowPathOptions path{
      .steps = options.steps, .shift = shift, .train_steps = 1000, .whole_times = false};
  return {
      std::make_unique<DpmSolver>(flow_path(path), DpmSolverOptions{.prediction = SolverPrediction::kFlow}),
      1000.0};
}

Walk discrete_walk(const objective::DiffusionObjective& objective, const spec::RunFile& run,
                   const SamplerOptions& options) {
  const auto prediction = objective.prediction();
  if (options.solver == Solver::kDdim) {
    DdimOptions ddim;
    ddim.steps = options.steps;
    ddim.prediction = prediction;
    ddim.spacing = TimeSpacing::kTrailing;
    return {std::make_unique<DdimSampler>(objective.schedule(), ddim), 1.0};
  }
  if (options.solver == Solver::kEuler) refuse_solver("dpm or ddim", "euler", run);
  DpmSolverOptions dpm;
  if (prediction == objective::Prediction::kVelocity) dpm.prediction = SolverPrediction::kVelocity;
  if (prediction == objective::Prediction::kSample) dpm.prediction = SolverPrediction::kSample;
  return {std::make_unique<DpmSolver>(discrete_path(objective.schedule(), {.steps = options.steps}), dpm),
          1.0};
}

void check_guidance(const GuidanceOptions& guidance, const spec::ModelOptions& model) {
  if (guidance.channels == 0) return;
  const int64_t most = spec::is_latent_diffusion(model) ? model.latent_channels : 0;
  if (guidance.channels <= most) return;
  throw InvalidInput(
      "guidance channels",
      most == 0 ? fmt::format("expected 0 for family {}, which has no latents, got {}", model.family,
                              guidance.channels)
                : fmt::format("expected at most the {} of the latents, got {}", most, guidance.channels));
}

/// Pictures of one size. returns: [B, H, W, 3] uint8
at::Tensor sample_batch(const PictureMaker& maker, const std::vector<Request>& batch,
                        const SamplerOptions& options) {
  const auto& run = maker.run();
  const objective::DiffusionObjective objective(run.objective, run.model.learned_variance);
  const int64_t side = spec::token_pixels(run.model);
  const int64_t tokens = batch[0].height / side * (batch[0].width / side);
  const Walk walk =
      objective.is_flow() ? flow_walk(run, options, tokens) : discrete_walk(objective, run, options);
  const bool guided = needs_unconditional(options.guidance);
  const auto denoising = maker.begin(
      batch, {.guided = guided,
              .embedded_guidance = options.embedded_guidance.value_or(run.objective.embedded_guidance)});
  const auto count = static_cast<int64_t>(batch.size());
  at::Tensor x = denoising->noise();
  SamplerState state;
  for (const auto& request : batch) state.noise_keys.push_back(request.seed);
  for (size_t i = 0; i < walk.sampler->times().size(); ++i) {
    const double t = walk.sampler->times()[i] / walk.time_scale;
    at::Tensor output = denoising->predict(x, t);
    if (run.model.learned_variance) output = without_variance(output);
    if (guided) output = guide(options.guidance, output.narrow(0, 0, count), output.narrow(0, count, count));
    if (objective.is_flow()) output = objective::to_velocity(run.objective, output, x, t);
    x = walk.sampler->step(output, x, static_cast<int64_t>(i), state);
  }
  return denoising->pictures(x).add(1.0).mul(127.5).round().clamp(0, 255).to(at::kByte);
}

}  // namespace

std::vector<HostArray> sample(const PictureMaker& maker, const std::vector<Request>& requests,
                              const SamplerOptions& options,
                              const std::function<void(int64_t, int64_t)>& progress) {
  const at::NoGradGuard no_grad;
  check_guidance(options.guidance, maker.run().model);
  if (options.embedded_guidance.has_value() && !maker.run().model.guidance_input)
    throw InvalidInput("embedded guidance", "belongs to models with model.guidance_input. Leave it out");
  const int64_t side = spec::token_pixels(maker.run().model);
  std::map<std::pair<int32_t, int32_t>, std::vector<size_t>> by_size;
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto& request = requests[i];
    if (request.width <= 0 || request.height <= 0 || request.width % side != 0 ||
        request.height % side != 0) {
      throw InvalidInput("size", fmt::format("expected multiples of {} pixels, got {}x{}", side,
                                             request.width, request.height));
    }
    by_size[{request.width, request.height}].push_back(i);
  }
  std::vector<HostArray> pictures(requests.size());
  int64_t done = 0;
  for (const auto& [size, members] : by_size) {
    for (size_t first = 0; first < members.size(); first += static_cast<size_t>(options.max_batch)) {
      const size_t last = std::min(members.size(), first + static_cast<size_t>(options.max_batch));
      std::vector<Request> batch;
      for (size_t i = first; i < last; ++i) batch.push_back(requests[members[i]]);
      const at::Tensor made = sample_batch(maker, batch, options);
      for (size_t i = first; i < last; ++i)
        pictures[members[i]] = device::to_host(made[static_cast<int64_t>(i - first)]);
      done += static_cast<int64_t>(batch.size());
      if (progress) progress(done, static_cast<int64_t>(requests.size()));
    }
  }
  return pictures;
}

}  // namespace chiliad::generate
