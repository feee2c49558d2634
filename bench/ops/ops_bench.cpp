// Operators one by one: share of the peak of fused multiply-adds or of the memory's bandwidth, and the ratio
// of CPU seconds to the same operator made of ATen's. One JSON line each; CPU seconds are medians.
//   bench_ops [THREADS [FILTER]]
#include <ATen/ATen.h>
#include <fmt/core.h>

#include <algorithm>

#include "bench/ops/bench.h"
#include "chiliad/device/tensor.h"
#include "chiliad/ops/attention.h"
#include "chiliad/ops/joint_attention.h"
#include "chiliad/ops/linear.h"
#include "chiliad/ops/modulation.h"
#include "chiliad/ops/varlen_attention.h"

namespace {

using namespace chiliad;
using namespace chiliad::bench;

void compare_linear(const Bench& bench, at::ScalarType type) {
  for (const auto& [rows, in, out] : {std::tuple{2048, 384, 384}, {2048, 384, 1536}, {2048, 1536, 384}}) {
    const Tensors inputs = {leaf({rows, in}, type), leaf({out, in}, type), leaf({out}, type)};
    bench.compare(
        fmt::format("linear {} {}x{}x{}", name_of(type), rows, in, out),
        [](const Tensors& t) {
          return ops::linear(t[0], {t[1], t[2]});
        },
        [](const Tensors& t) {
          return ops::plain::linear(t[0], {t[1], t[2]});
        },
        inputs, 6e-9 * rows * in * out, Work::kGflop);
  }
  const Tensors mlp = {leaf({2048, 1536}, type), leaf({384, 1536}, type), leaf({384}, type)};
  bench.compare(
      fmt::format("gelu_linear {} 2048x1536x384", name_of(type)),
      [](const Tensors& t) {
        return ops::gelu_linear(t[0], {t[1], t[2]});
      },
      [](const Tensors& t) {
        return ops::plain::gelu_linear(t[0], {t[1], t[2]});
      },
      mlp, 6e-9 * 2048 * 1536 * 384, Work::kGflop);
  const Tensors qkv = {leaf({8, 256, 384}, type), leaf({8, 1, 384}, type), leaf({8, 1, 384}, type),
                       leaf({384, 384}, type), leaf({384}, type)};
  bench.compare(
      fmt::format("norm_modulate_linears {} 2048x384x(3x384)", name_of(type)),
      [](const Tensors& t) {
        const ops::LinearParams one{t[3], t[4]};
        return at::cat(ops::norm_modulate_linears(t[0], t[1], t[2], 1e-6, {one, one, one}), -1);
      },
      [](const Tensors& t) {
        const ops::LinearParams one{t[3], t[4]};
        return at::cat(ops::plain::norm_modulate_linears(t[0], t[1], t[2], 1e-6, {one, one, one}), -1);
      },
      qkv, 6e-9 * 2048 * 384 * 1152, Work::kGflop);
}

void compare_gate(const Bench& bench, at::ScalarType type) {
  const Tensors inputs = {leaf({8, 1024, 1152}, type), leaf({8, 1, 1152}, type), leaf({8, 1024, 1152}, type)};
  const auto bytes = static_cast<double>(inputs[0].nbytes());
  bench.compare(
      fmt::format("gated_residual {} 8192x1152", name_of(type)),
      [](const Tensors& t) { return ops::gated_residual(t[0], t[1], t[2]); },
      [](const Tensors& t) { return ops::plain::gated_residual(t[0], t[1], t[2]); }, inputs, 6e-9 * bytes,
      Work::kGigabytes);  // 2 reads and 1 write forward, the same backward
}

/// 3.5 times the forward's work, of which 2 products; backward makes one of them again.
void compare_attention(const Bench& bench, at::ScalarType type) {
  for (const int64_t size : {64, 72}) {
    for (const int64_t length : {256, 1024, 4096}) {
      const int64_t heads = 4;
      const int64_t items = std::max<int64_t>(1, 1024 / length);
      const std::vector<int64_t> shape = {items, length, heads * size};
      const Tensors inputs = {leaf(shape, type), leaf(shape, type), leaf(shape, type)};
      const double pairs = static_cast<double>(items * heads * length * length);
      bench.compare(
          fmt::format("attention {} length {} head {}", name_of(type), length, size),
          [=](const Tensors& t) { return ops::attention(t[0], t[1], t[2], heads, {}); },
          [=](const Tensors& t) { return ops::plain::attention(t[0], t[1], t[2], heads, {}); }, inputs,
          14e-9 * pairs * static_cast<double>(size), Work::kGflop, type == at::kBFloat16 ? 2.0 : 0.0);
    }
  }
  const at::Tensor mask = at::arange(77).expand({8, 77}) < 20;
  const Tensors cross = {leaf({8, 256, 384}, type), leaf({8, 77, 384}, type), leaf({8, 77, 384}, type)};
  bench.compare(
      fmt::format("attention {} 256 x 77 with 20 keys that count", name_of(type)),
      [=](const Tensors& t) { return ops::attention(t[0], t[1], t[2], 6, mask); },
      [=](const Tensors& t) { return ops::plain::attention(t[0], t[1], t[2], 6, mask); }, cross,
      14e-9 * 8 * 256 * 20 * 384, Work::kGflop);
  const std::vector<int64_t> lengths = {256, 64, 1024, 400, 304};
  const Tensors pack = {leaf({2048, 256}, type), leaf({2048, 256}, type), leaf({2048, 256}, type)};
  double pairs = 0.0;
  for (const int64_t length : lengths) pairs += static_cast<double>(length * length);
  bench.compare(
      fmt::format("packed_attention {} of 5 items", name_of(type)),
      [=](const Tensors& t) { return ops::packed_attention(t[0], t[1], t[2], 4, lengths, lengths); },
      [=](const Tensors& t) { return ops::plain::packed_attention(t[0], t[1], t[2], 4, lengths, lengths); },
      pack, 14e-9 * pairs * 256, Work::kGflop);
}

/// Two streams of SD3: 1024 patches and 154 tokens; documents of a pack of a language model.
void compare_streams(const Bench& bench, at::ScalarType type) {
  Tensors streams;
  for (const int64_t length : {1024, 1024, 1024, 154, 154, 154})
    streams.push_back(leaf({1, length, 512}, type));
  bench.compare(
      fmt::format("joint_attention {} 1024 and 154, 8 heads of 64", name_of(type)),
      [](const Tensors& t) {
        const auto mixed = ops::joint_attention({t[0], t[1], t[2]}, {t[3], t[4], t[5]}, 8);
        return at::cat({mixed.first, mixed.second}, 1);
      },
      [](const Tensors& t) {
        return ops::plain::attention(at::cat({t[0], t[3]}, 1), at::cat({t[1], t[4]}, 1),
                                     at::cat({t[2], t[5]}, 1), 8, {});
      },
      streams, 14e-9 * 8 * 1178 * 1178 * 64, Work::kGflop);
  const Tensors pack{leaf({2048, 8, 64}, type), leaf({2048, 2, 64}, type), leaf({2048, 2, 64}, type)};
  const at::Tensor ends = at::tensor({0, 300, 1100, 1600, 2048}, at::kLong);
  double pairs = 0.0;
  for (const int64_t length : {300, 800, 500, 448}) pairs += 0.5 * static_cast<double>(length * length);
  bench.compare(
      fmt::format("varlen_attention {} of 4 documents, 8 heads on 2", name_of(type)),
      [=](const Tensors& t) { return ops::varlen_attention(t[0], t[1], t[2], ends); },
      [](const Tensors& t) {
        Tensors parts;
        int64_t from = 0;
        for (const int64_t length : {300, 800, 500, 448}) {
          const auto heads = [&](const at::Tensor& x, int64_t copies) {
            return x.narrow(0, from, length).repeat_interleave(copies, 1).transpose(0, 1).unsqueeze(0);
          };
          parts.push_back(
              at::scaled_dot_product_attention(heads(t[0], 1), heads(t[1], 4), heads(t[2], 4), {}, 0.0, true)
                  .squeeze(0)
                  .transpose(0, 1));
          from += length;
        }
        return at::cat(parts);
      },
      pack, 14e-9 * pairs * 8 * 64, Work::kGflop);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  device::set_compute_threads(args.empty() ? 1 : std::stoi(args[0]));
  const Bench bench(args.size() > 1 ? args[1] : "");
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    compare_linear(bench, type);
    compare_gate(bench, type);
    compare_attention(bench, type);
    compare_streams(bench, type);
    compare_values(bench, type);
  }
  return 0;
}
