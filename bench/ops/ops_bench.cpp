// Operators one by one: share of the peak of fused multiply-adds or of the memory's bandwidth, and the ratio
// of CPU seconds to the same operator made of ATen's. One JSON line each; CPU seconds are medians.
//   bench_ops [THREADS [FILTER]]
#include <ATen/ATen.h>
#include <fmt/core.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "chiliad/device/tensor.h"
#include "chiliad/observe/cpu_time.h"
#include "chiliad/ops/adamw.h"
#include "chiliad/ops/attention.h"
#include "chiliad/ops/cpu/micro_kernel.h"
#include "chiliad/ops/cpu/parallel.h"
#include "chiliad/ops/linear.h"
#include "chiliad/ops/modulation.h"

namespace {

using namespace chiliad;
using Tensors = std::vector<at::Tensor>;
using Op = std::function<at::Tensor(const Tensors&)>;

double median_seconds(const std::function<void()>& work, int times = 7) {
  work();
  std::vector<double> seconds;
  for (int i = 0; i < times; ++i) {
    const double start = observe::process_cpu_seconds();
    work();
    seconds.push_back(observe::process_cpu_seconds() - start);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

/// Fused multiply-adds of fp32 on memory of the first cache: what a core can do, in GFLOP/s.
double fma_peak() {
  constexpr int64_t kDepth = 128;
  const at::Tensor left = at::ones({int64_t{12}, kDepth});
  const at::Tensor right = at::ones({kDepth, 32});
  const at::Tensor out = at::zeros({int64_t{12}, 32});
  const double seconds = median_seconds([&] {
    for (int i = 0; i < 20000; ++i)
      ops::cpu::multiply_column(12, kDepth, {left.const_data_ptr<float>(), kDepth, 1},
                                {right.const_data_ptr<float>()}, out.mutable_data_ptr<float>(), 32, false);
  });
  return 20000 * 2.0 * 12 * 32 * kDepth / seconds / 1e9;
}

/// Bytes a second of one core that copies memory far larger than its caches.
double copy_bandwidth() {
  const at::Tensor from = at::ones({64 << 20});
  const at::Tensor to = at::zeros({64 << 20});
  return 2.0 * static_cast<double>(from.nbytes()) / median_seconds([&] { to.copy_(from); }, 3) / 1e9;
}

class Bench {
 public:
  explicit Bench(std::string filter) : filter_(std::move(filter)) {
    if (ops::cpu::has_kernels()) peak_ = fma_peak();
    bandwidth_ = copy_bandwidth();
    fmt::print(R"({{"bench":"ops","metric":"fma_peak","value":{:.1f},"unit":"GFLOP/s a core"}})"
               "\n",
               peak_);
    fmt::print(R"({{"bench":"ops","metric":"copy_bandwidth","value":{:.1f},"unit":"GB/s a core"}})"
               "\n",
               bandwidth_);
  }

  /// Forward and backward of both, in turns; work in GFLOP, or in GB where `bytes`.
  void compare(const std::string& name, const Op& ours, const Op& plain, const Tensors& inputs, double work,
               bool bytes, double target = 0.0) const {
    if (name.find(filter_) == std::string::npos) return;
    const double mine = seconds_of(ours, inputs);
    const double theirs = seconds_of(plain, inputs);
    const double rate = work / mine;
    fmt::print(
        R"({{"bench":"ops","metric":"{}","value":{:.3f},"unit":"times the rate of ATen","target":{},"ok":{},)"
        R"("cpu_ms":{:.3f},"aten_cpu_ms":{:.3f},"{}":{:.1f},"share":{:.3f}}})"
        "\n",
        name, theirs / mine, target > 0.0 ? fmt::format("{}", target) : "null",
        target > 0.0 ? (theirs / mine >= target ? "true" : "false") : "null", mine * 1e3, theirs * 1e3,
        bytes ? "gb_s" : "gflop_s", rate, rate / (bytes ? bandwidth_ : peak_));
  }

 private:
  static double seconds_of(const Op& op, const Tensors& inputs) {
    const at::Tensor sample = op(inputs);
    const at::Tensor upstream = at::randn(sample.sizes()).to(sample.scalar_type());
    return median_seconds([&] {
      for (const auto& input : inputs) input.mutable_grad() = at::Tensor();
      torch::autograd::backward({op(inputs)}, {upstream});
    });
  }

  std::string filter_;
  double peak_ = 0.0;
  double bandwidth_ = 0.0;
};

at::Tensor leaf(const std::vector<int64_t>& sizes, at::ScalarType type) {
  return at::randn(sizes).to(type).set_requires_grad(true);
}

const char* name_of(at::ScalarType type) {
  return type == at::kFloat ? "fp32" : "bf16";
}

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
        inputs, 6e-9 * rows * in * out, false);
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
      mlp, 6e-9 * 2048 * 1536 * 384, false);
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
      qkv, 6e-9 * 2048 * 384 * 1152, false);
}

void compare_gate(const Bench& bench, at::ScalarType type) {
  const Tensors inputs = {leaf({8, 1024, 1152}, type), leaf({8, 1, 1152}, type), leaf({8, 1024, 1152}, type)};
  const auto bytes = static_cast<double>(inputs[0].nbytes());
  bench.compare(
      fmt::format("gated_residual {} 8192x1152", name_of(type)),
      [](const Tensors& t) { return ops::gated_residual(t[0], t[1], t[2]); },
      [](const Tensors& t) { return ops::plain::gated_residual(t[0], t[1], t[2]); }, inputs, 6e-9 * bytes,
      true);  // 2 reads and 1 write forward, the same backward
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
          14e-9 * pairs * static_cast<double>(size), false, type == at::kBFloat16 ? 2.0 : 0.0);
    }
  }
  const at::Tensor mask = at::arange(77).expand({8, 77}) < 20;
  const Tensors cross = {leaf({8, 256, 384}, type), leaf({8, 77, 384}, type), leaf({8, 77, 384}, type)};
  bench.compare(
      fmt::format("attention {} 256 x 77 with 20 keys that count", name_of(type)),
      [=](const Tensors& t) { return ops::attention(t[0], t[1], t[2], 6, mask); },
      [=](const Tensors& t) { return ops::plain::attention(t[0], t[1], t[2], 6, mask); }, cross,
      14e-9 * 8 * 256 * 20 * 384, false);
  const std::vector<int64_t> lengths = {256, 64, 1024, 400, 304};
  const Tensors pack = {leaf({2048, 256}, type), leaf({2048, 256}, type), leaf({2048, 256}, type)};
  double pairs = 0.0;
  for (const int64_t length : lengths) pairs += static_cast<double>(length * length);
  bench.compare(
      fmt::format("packed_attention {} of 5 items", name_of(type)),
      [=](const Tensors& t) { return ops::packed_attention(t[0], t[1], t[2], 4, lengths, lengths); },
      [=](const Tensors& t) { return ops::plain::packed_attention(t[0], t[1], t[2], 4, lengths, lengths); },
      pack, 14e-9 * pairs * 256, false);
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
  }
  return 0;
}
