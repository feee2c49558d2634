#include "chiliad/generate/euler.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/rng.h"
#include "chiliad/device/tensor.h"
#include "chiliad/generate/guidance.h"
#include "chiliad/objective/flow.h"
#include "chiliad/objective/flow_schedule.h"
#include "chiliad/text/byte_tokenizer.h"

namespace chiliad::generate {
namespace {

at::Tensor padded_tokens(const std::vector<std::vector<int32_t>>& rows) {
  size_t longest = 1;
  for (const auto& row : rows) longest = std::max(longest, row.size());
  at::Tensor tokens =
      at::zeros({static_cast<int64_t>(rows.size()), static_cast<int64_t>(longest)}, at::kLong);
  auto* data = tokens.mutable_data_ptr<int64_t>();
  for (const auto& row : rows) {
    std::copy(row.begin(), row.end(), data);
    data += longest;
  }
  return tokens;
}

at::Tensor initial_noise(const std::vector<Request>& batch, int64_t count) {
  at::Tensor noise = at::empty({static_cast<int64_t>(batch.size()), count}, at::kFloat);
  float* out = noise.mutable_data_ptr<float>();
  for (const auto& request : batch) {
    Rng rng({request.seed, static_cast<uint64_t>(Draw::kSample)});
    rng.fill_normal({out, static_cast<size_t>(count)});
    out += count;
  }
  return noise;
}

/// Pictures of one size. returns: [B, H, W, 3] uint8
at::Tensor sample_batch(const InferenceModel& model, const std::vector<Request>& batch,
                        const SamplerOptions& options) {
  const auto& run = model.run();
  const int64_t patch = run.model.patch;
  const int64_t rows = batch[0].height / patch;
  const int64_t columns = batch[0].width / patch;
  const auto count = static_cast<int64_t>(batch.size());
  const text::ByteTokenizer tokenizer(run.model.text_max_tokens);
  std::vector<std::vector<int32_t>> texts;
  for (const auto& request : batch) texts.push_back(tokenizer.encode(request.prompt));
  const GuidanceOptions guidance{.scale = options.guidance};
  const bool guided = needs_unconditional(guidance);
  if (guided) texts.resize(2 * batch.size(), {text::ByteTokenizer::kNull});  // conditional rows first
  const at::Tensor tokens = padded_tokens(texts);
  const int64_t width = 3 * patch * patch;
  at::Tensor x = initial_noise(batch, rows * columns * width).view({count, rows * columns, width});
  const EulerSampler sampler(euler_times(options.steps, run.objective.shift));
  SamplerState state;
  for (size_t i = 0; i < sampler.times().size(); ++i) {
    const double t = sampler.times()[i];
    const at::Tensor input = guided ? at::cat({x, x}) : x;
    const at::Tensor time = at::full({input.size(0)}, t, at::kFloat);
    at::Tensor prediction = model.predict(input, time, tokens, rows, columns);
    if (guided)
      prediction = guide(guidance, prediction.narrow(0, 0, count), prediction.narrow(0, count, count));
    const at::Tensor velocity = objective::to_velocity(run.objective, prediction, x, t);
    x = sampler.step(velocity, x, static_cast<int64_t>(i), state);
  }
  return objective::unpatchify(x, rows, columns, patch)
      .add(1.0)
      .mul(127.5)
      .round()
      .clamp(0, 255)
      .to(at::kByte);
}

}  // namespace

std::vector<double> euler_times(int steps, double shift) {
  return objective::sampler_sigmas(objective::even_sigmas(steps), shift);
}

at::Tensor euler_step(const at::Tensor& x, const at::Tensor& velocity, double sigma, double next) {
  return x + velocity * (next - sigma);
}

EulerSampler::EulerSampler(std::vector<double> sigmas, double time_scale) : sigmas_(std::move(sigmas)) {
  CHILIAD_CHECK_GT(sigmas_.size(), 1U);
  times_.assign(sigmas_.begin(), sigmas_.end() - 1);
  for (double& time : times_) time *= time_scale;
}

at::Tensor EulerSampler::step(const at::Tensor& model_output, const at::Tensor& x, int64_t i,
                              SamplerState& /*state*/) const {
  const auto now = static_cast<size_t>(i);
  CHILIAD_CHECK_LT(now, times_.size());
  return euler_step(x, model_output, sigmas_[now], sigmas_[now + 1]);
}

std::vector<HostArray> sample(const InferenceModel& model, const std::vector<Request>& requests,
                              const SamplerOptions& options,
                              const std::function<void(int64_t, int64_t)>& progress) {
  const int64_t patch = model.run().model.patch;
  std::map<std::pair<int32_t, int32_t>, std::vector<size_t>> by_size;
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto& request = requests[i];
    if (request.width <= 0 || request.height <= 0 || request.width % patch != 0 ||
        request.height % patch != 0) {
      throw InvalidInput("size", fmt::format("expected multiples of {} pixels, got {}x{}", patch,
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
      const at::Tensor made = sample_batch(model, batch, options);
      for (size_t i = first; i < last; ++i)
        pictures[members[i]] = device::to_host(made[static_cast<int64_t>(i - first)]);
      done += static_cast<int64_t>(batch.size());
      if (progress) progress(done, static_cast<int64_t>(requests.size()));
    }
  }
  return pictures;
}

}  // namespace chiliad::generate
