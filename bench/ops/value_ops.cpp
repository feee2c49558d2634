#include <ATen/ATen.h>
#include <fmt/core.h>

#include "bench/ops/bench.h"
#include "chiliad/ops/adamw.h"
#include "chiliad/ops/axis_rotary.h"
#include "chiliad/ops/group_norm.h"
#include "chiliad/ops/joint_attention.h"
#include "chiliad/ops/linear_cross_entropy.h"
#include "chiliad/ops/modulation.h"
#include "chiliad/ops/rms_norm.h"
#include "chiliad/ops/rotary.h"
#include "chiliad/ops/swiglu.h"

namespace chiliad::bench {
namespace {

/// GB of so many passes over a tensor. A pass is one read or one write; forward and backward together.
double passes(double count, const at::Tensor& tensor) {
  return 1e-9 * count * static_cast<double>(tensor.nbytes());
}

void compare_norms(const Bench& bench, at::ScalarType type) {
  const Tensors inputs{leaf({8, 1024, 1152}, type), leaf({8, 1, 1152}, type), leaf({8, 1, 1152}, type)};
  bench.compare(
      fmt::format("norm_modulate {} 8192x1152", name_of(type)),
      [](const Tensors& t) { return ops::norm_modulate(t[0], t[1], t[2]); },
      [](const Tensors& t) { return at::layer_norm(t[0], {1152}, {}, {}, 1e-6) * (t[2] + 1) + t[1]; }, inputs,
      passes(5, inputs[0]), Work::kGigabytes);
  const Tensors affine{leaf({8192, 1152}, type), leaf({1152}, type), leaf({1152}, type)};
  bench.compare(
      fmt::format("layer_norm {} 8192x1152", name_of(type)),
      [](const Tensors& t) { return ops::layer_norm(t[0], t[1], t[2]); },
      [](const Tensors& t) { return at::layer_norm(t[0], {1152}, t[1], t[2], 1e-5); }, affine,
      passes(5, affine[0]), Work::kGigabytes);
  const auto rms = [](const at::Tensor& x, const at::Tensor& weight) {
    const at::Tensor wide = x.to(at::kFloat);
    return (wide * (wide.square().mean({-1}, true) + 1e-6).rsqrt()).to(x.scalar_type()) * weight;
  };
  bench.compare(
      fmt::format("rms_norm {} 8192x1152", name_of(type)),
      [](const Tensors& t) { return ops::rms_norm(t[0], t[1], 1e-6); },
      [rms](const Tensors& t) { return rms(t[0], t[1]); }, {affine[0], affine[1]}, passes(5, affine[0]),
      Work::kGigabytes);
  const Tensors heads{leaf({8, 1024, 1152}, type), leaf({72}, type)};
  bench.compare(
      fmt::format("norm_heads {} 8192x(16x72)", name_of(type)),
      [](const Tensors& t) { return ops::norm_heads(t[0], t[1]); },
      [rms](const Tensors& t) {
        return rms(t[0].view({8, 1024, 16, 72}), t[1]).flatten(2);
      },
      heads, passes(5, heads[0]), Work::kGigabytes);
  const Tensors picture{leaf({1, 128, 256, 256}, type), leaf({128}, type), leaf({128}, type)};
  bench.compare(
      fmt::format("group_norm_silu {} 128x256x256", name_of(type)),
      [](const Tensors& t) { return ops::group_norm_silu(t[0], 32, t[1], t[2], 1e-6); },
      [](const Tensors& t) { return at::silu(at::group_norm(t[0], 32, t[1], t[2], 1e-6)); }, picture,
      passes(6, picture[0]), Work::kGigabytes);
}

void compare_activations(const Bench& bench, at::ScalarType type) {
  const Tensors wide{leaf({8192, 4608}, type)};
  bench.compare(
      fmt::format("gelu {} 8192x4608", name_of(type)), [](const Tensors& t) { return ops::gelu(t[0]); },
      [](const Tensors& t) { return at::gelu(t[0], "tanh"); }, wide, passes(5, wide[0]), Work::kGigabytes);
  const Tensors gates{leaf({8192, 4608}, type), leaf({8192, 4608}, type)};
  bench.compare(
      fmt::format("swiglu {} 8192x4608", name_of(type)),
      [](const Tensors& t) { return ops::swiglu(t[0], t[1]); },
      [](const Tensors& t) { return at::silu(t[0]) * t[1]; }, gates, passes(8, gates[0]), Work::kGigabytes);
}

void compare_turns(const Bench& bench, at::ScalarType type) {
  const at::Tensor angles = at::rand({2048, 64}) * 6.0;
  const at::Tensor cos = angles.cos();
  const at::Tensor sin = angles.sin();
  const Tensors pairs{leaf({4, 2048, 1024}, type)};
  bench.compare(
      fmt::format("rotate_pairs {} 8192x(8x128)", name_of(type)),
      [=](const Tensors& t) { return ops::rotate_pairs(t[0], cos, sin); },
      [=](const Tensors& t) {
        const at::Tensor x = t[0].to(at::kFloat).view({4, 2048, 8, 64, 2});
        const at::Tensor c = cos.view({1, 2048, 1, 64});
        const at::Tensor s = sin.view({1, 2048, 1, 64});
        const at::Tensor even = x.select(-1, 0);
        const at::Tensor odd = x.select(-1, 1);
        return at::stack({even * c - odd * s, odd * c + even * s}, -1)
            .to(t[0].scalar_type())
            .view(t[0].sizes());
      },
      pairs, passes(4, pairs[0]), Work::kGigabytes);
  const Tensors halves{leaf({2048, 32, 128}, type)};
  bench.compare(
      fmt::format("rotate {} 2048x(32x128)", name_of(type)),
      [=](const Tensors& t) { return ops::rotate(t[0], cos, sin); },
      [=](const Tensors& t) {
        const at::Tensor c = at::cat({cos, cos}, 1).to(t[0].scalar_type()).unsqueeze(1);
        const at::Tensor s = at::cat({sin, sin}, 1).to(t[0].scalar_type()).unsqueeze(1);
        const auto parts = t[0].chunk(2, -1);
        return t[0] * c + at::cat({-parts[1], parts[0]}, -1) * s;
      },
      halves, passes(4, halves[0]), Work::kGigabytes);
}

void compare_loss(const Bench& bench, at::ScalarType type) {
  const Tensors inputs{leaf({1024, 512}, type), leaf({16384, 512}, type)};
  const at::Tensor targets = at::randint(16384, {1024}, at::kLong);
  const at::Tensor weights = at::ones({1024});
  bench.compare(
      fmt::format("linear_cross_entropy {} 1024x512, 16384 words", name_of(type)),
      [=](const Tensors& t) { return ops::linear_cross_entropy(t[0], t[1], targets, weights, 256).loss; },
      [=](const Tensors& t) {
        const at::Tensor logits = at::matmul(t[0], t[1].t()).to(at::kFloat);
        return at::cross_entropy_loss(logits, targets, {}, at::Reduction::Sum);
      },
      inputs, 6e-9 * 1024 * 512 * 16384, Work::kGflop);
}

/// Of a shard of 16 million values; ATen's beside it is the loop of AdamW and an average by tensors.
void compare_updates(const Bench& bench) {
  constexpr int64_t kCount = 16 << 20;
  std::vector<at::Tensor> state;
  for (int i = 0; i < 5; ++i) state.push_back(at::rand({kCount}));
  ops::AdamWStep step;
  step.lr = 1e-4;
  step.ema = 0.999;
  const auto ours = [&] {
    ops::adamw(step, kCount, state[0].mutable_data_ptr<float>(), state[1].const_data_ptr<float>(),
               state[2].mutable_data_ptr<float>(), state[3].mutable_data_ptr<float>(),
               state[4].mutable_data_ptr<float>());
  };
  const auto plain = [&] {
    state[2].lerp_(state[1], 0.1);
    state[3].mul_(0.999).addcmul_(state[1], state[1], 0.001);
    state[0].addcdiv_(state[2], state[3].sqrt().add_(1e-8), -1e-4);
    state[4].lerp_(state[0], 0.001);
  };
  bench.compare_runs("adamw with average fp32 16 M values", ours, plain, passes(9, state[0]),
                     Work::kGigabytes);
  double sum = 0.0;
  bench.compare_runs(
      "sum_of_squares fp32 16 M values",
      [&] { sum += ops::sum_of_squares(state[1].const_data_ptr<float>(), kCount); },
      [&] { sum += state[1].square().sum().item<double>(); }, passes(1, state[1]), Work::kGigabytes);
}

}  // namespace

void compare_values(const Bench& bench, at::ScalarType type) {
  compare_norms(bench, type);
  compare_activations(bench, type);
  compare_turns(bench, type);
  compare_loss(bench, type);
  if (type == at::kFloat) compare_updates(bench);
}

}  // namespace chiliad::bench
