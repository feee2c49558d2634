// Training steps of the small diffusion transformers of run.sh: forward, loss, backward, clipping and AdamW,
// layer by layer as the trainer runs them. Random weights and inputs.
//   bench_diffusion step dit|pixart fp32|bf16 THREADS SECONDS [none|selective|layers]
//   bench_diffusion peak THREADS                   products that are as fast as products get
//   bench_diffusion mixed dit|pixart fp32|bf16 THREADS ROUNDS [DEPTH] [SIDE]      mixed.h
#include <ATen/ATen.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "bench/diffusion/mixed.h"
#include "bench/diffusion/trained_layer.h"
#include "chiliad/device/tensor.h"
#include "chiliad/model/diffusion.h"
#include "chiliad/ops/cpu/parallel.h"
#include "chiliad/parallel/segment.h"
#include "chiliad/spec/families/families.h"

namespace {

using namespace chiliad;
using namespace chiliad::bench;

constexpr int64_t kBatch = 8;
constexpr int64_t kTextTokens = 77;

double peak_mib() {
  std::ifstream status("/proc/self/status");
  std::string word;
  double kib = 0.0;
  while (status >> word) {
    if (word == "VmHWM:") status >> kib;
  }
  return kib / 1024.0;
}

/// The shapes of the script of the peers (PEER_SCRIPTS/dit_common.py).
spec::DiffusionOptions options_of(const std::string& family) {
  spec::DiffusionOptions options;
  options.family = family;
  options.heads = 6;
  options.head_size = 64;
  options.depth = 12;
  options.out_channels = 4;
  if (family == "pixart") options.text_channels = 384;
  return options;
}

model::LatentBatch batch_of(const std::string& family) {
  model::LatentBatch batch;
  batch.latents = at::randn({kBatch, 4, 32, 32});
  batch.time = at::randint(0, 1000, {kBatch}).to(at::kFloat);
  if (family == "dit") batch.labels = at::randint(0, 1000, {kBatch});
  if (family == "pixart") batch.text = at::randn({kBatch, kTextTokens, 384});
  return batch;
}

/// most: every third layer keeps what its backward pass needs, as a memory budget may ask for.
spec::Recompute recompute_of(const std::string& mode, size_t layer) {
  if (mode == "layers" || (mode == "most" && layer % 3 != 0)) return spec::Recompute::kLayers;
  return mode == "selective" ? spec::Recompute::kSelective : spec::Recompute::kNone;
}

class Training {
 public:
  Training(const std::string& family, at::ScalarType type, const std::string& recompute)
      : options_(options_of(family)), mode_(recompute), batch_(batch_of(family)) {
    for (auto& layer : model::build_diffusion(options_)) layers_.emplace_back(std::move(layer), type);
    target_ = at::randn({kBatch, 4, 32, 32});
  }

  double step() {
    for (auto& layer : layers_) layer.open();
    layers::Carry carry = model::make_diffusion_input(options_, batch_);
    std::vector<parallel::Segment> segments;
    for (size_t i = 0; i < layers_.size(); ++i) {
      const Instant start;
      segments.push_back(
          parallel::run_forward(layers_[i].layer(), carry, {.recompute = recompute_of(mode_, i)}));
      add("forward", layers_[i], start);
    }
    const at::Tensor difference = carry.get("prediction").to(at::kFloat) - target_;
    const double loss = difference.square().mean().item<double>();
    layers::Carry gradients;
    gradients.set("prediction", (difference * (2.0 / static_cast<double>(difference.numel())))
                                    .to(carry.get("prediction").scalar_type()));
    for (size_t i = layers_.size(); i-- > 0;) {
      const Instant start;
      parallel::run_backward(std::move(segments.back()), gradients);
      segments.pop_back();
      add("backward", layers_[i], start);
    }
    update();
    return loss;
  }

  [[nodiscard]] const std::map<std::string, double>& seconds() const { return seconds_; }
  void forget_seconds() { seconds_.clear(); }

 private:
  void update() {
    const Instant start;
    double squares = 0.0;
    for (auto& layer : layers_) squares += layer.close();
    ops::AdamWStep options{.lr = 1e-4, .weight_decay = 0.01, .step = ++num_steps_};
    options.grad_scale = std::min(1.0, 1.0 / std::sqrt(squares));
    for (auto& layer : layers_) layer.update(options);
    seconds_["optimizer"] += observe::process_cpu_seconds() - start.cpu;
  }

  void add(const std::string& pass, const TrainedLayer& layer, const Instant& start) {
    const auto& name = layer.layer().decl().name;
    const bool block = name.find("block") != std::string::npos;
    seconds_[(block ? "blocks " : "ends ") + pass] += observe::process_cpu_seconds() - start.cpu;
  }

  spec::DiffusionOptions options_;
  std::string mode_;  // of recomputation
  model::LatentBatch batch_;
  std::vector<TrainedLayer> layers_;
  at::Tensor target_;
  int64_t num_steps_ = 0;
  std::map<std::string, double> seconds_;  // of the CPU
};

/// Multiplications and additions of a step's products, attention included; backward has twice those of
/// forward (attention two and a half times).
double flops_of(const spec::DiffusionOptions& options) {
  const auto width = static_cast<double>(options.width());
  const double tokens = kBatch * 256.0;
  const double text = options.family == "pixart" ? kBatch * static_cast<double>(kTextTokens) : 0.0;
  const double depth = static_cast<double>(options.depth);
  double linear = 12.0 * width * width * tokens;
  double attention = 2.0 * tokens * 256.0 * width;
  if (options.family == "pixart") {
    linear += 2.0 * width * width * (tokens + text);
    attention += 2.0 * tokens * kTextTokens * width;
  }
  return 2.0 * depth * (3.0 * linear + 3.5 * attention);
}

void time_steps(const std::string& family, const std::string& type, int threads, double seconds,
                const std::string& recompute) {
  device::set_compute_threads(threads);
  if (std::getenv("KEEP_FREED") != nullptr) ops::cpu::keep_freed_memory();
  Training training(family, type == "bf16" ? at::kBFloat16 : at::kFloat, recompute);
  const double first_loss = training.step();
  training.step();
  training.forget_seconds();
  std::vector<double> walls;
  std::vector<double> cpus;
  double last_loss = 0.0;
  const Instant begin;
  while (walls.size() < 4 || Instant().wall - begin.wall < seconds) {
    const Instant start;
    last_loss = training.step();
    const Instant end;
    walls.push_back(end.wall - start.wall);
    cpus.push_back(end.cpu - start.cpu);
  }
  const double cpu = median(cpus);
  fmt::print(
      R"({{"model":"{}","dtype":"{}","threads":{},"recompute":"{}","steps":{},"wall":{:.4f},"cpu":{:.4f},)"
      R"("least_cpu":{:.4f},"peak_mib":{:.0f},"gflops":{:.1f},"first_loss":{:.6f},"last_loss":{:.6f})",
      family, type, threads, recompute, walls.size(), median(walls), cpu,
      *std::min_element(cpus.begin(), cpus.end()), peak_mib(), flops_of(options_of(family)) / 1e9, first_loss,
      last_loss);
  for (const auto& [part, total] : training.seconds())
    fmt::print(R"(,"{} s":{:.4f})", part, total / static_cast<double>(walls.size()));
  fmt::print("}}\n");
}

/// GFLOP/s a CPU second of the best of several square products in fp32. (In bf16 ATen has no fast ones on
/// CPUs without instructions for it.)
void time_peak(int threads) {
  device::set_compute_threads(threads);
  const at::Tensor a = at::randn({2048, 2048});
  const at::Tensor b = at::randn({2048, 2048});
  double best = 0.0;
  for (int i = 0; i < 8; ++i) {
    const Instant start;
    at::mm(a, b);
    best = std::max(best, 2.0 * 2048 * 2048 * 2048 / 1e9 / (Instant().cpu - start.cpu));
  }
  fmt::print(R"({{"peak":"fp32","threads":{},"gflops_a_cpu_second":{:.1f}}})"
             "\n",
             threads, best);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (args.size() >= 2 && args[0] == "peak") {
    time_peak(std::stoi(args[1]));
  } else if (args.size() >= 5 && args[0] == "step") {
    time_steps(args[1], args[2], std::stoi(args[3]), std::stod(args[4]), args.size() > 5 ? args[5] : "none");
  } else if (args.size() >= 5 && args[0] == "mixed") {
    MixedOptions options;
    options.family = args[1];
    options.type = args[2] == "bf16" ? at::kBFloat16 : at::kFloat;
    options.threads = std::stoi(args[3]);
    options.rounds = std::stoi(args[4]);
    if (args.size() > 5) options.depth = std::stoi(args[5]);
    if (args.size() > 6) options.side = std::stoi(args[6]);
    time_mixed(options);
  } else {
    fmt::print(stderr,
               "usage: bench_diffusion step dit|pixart fp32|bf16 THREADS SECONDS [none|selective|layers]\n"
               "       bench_diffusion peak THREADS\n"
               "       bench_diffusion mixed dit|pixart fp32|bf16 THREADS ROUNDS [DEPTH] [SIDE]\n");
    return 2;
  }
  return 0;
}
