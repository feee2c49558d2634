#include "bench/ops/bench.h"

#include <ATen/ATen.h>
#include <fmt/core.h>

#include <algorithm>

#include "chiliad/observe/cpu_time.h"
#include "chiliad/ops/backward.h"
#include "chiliad/ops/cpu/micro_kernel.h"
#include "chiliad/ops/cpu/parallel.h"

namespace chiliad::bench {
namespace {

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

double seconds_of(const Op& op, const Tensors& inputs) {
  const at::Tensor sample = op(inputs);
  const at::Tensor upstream = at::randn(sample.sizes()).to(sample.scalar_type());
  return median_seconds([&] {
    for (const auto& input : inputs) input.mutable_grad() = at::Tensor();
    ops::backward({op(inputs)}, {upstream});
  });
}

}  // namespace

Bench::Bench(std::string filter) : filter_(std::move(filter)) {
  if (ops::cpu::has_kernels()) peak_ = fma_peak();
  bandwidth_ = copy_bandwidth();
  fmt::print(R"({{"bench":"ops","metric":"fma_peak","value":{:.1f},"unit":"GFLOP/s a core"}})"
             "\n",
             peak_);
  fmt::print(R"({{"bench":"ops","metric":"copy_bandwidth","value":{:.1f},"unit":"GB/s a core"}})"
             "\n",
             bandwidth_);
}

void Bench::compare(const std::string& name, const Op& ours, const Op& plain, const Tensors& inputs,
                    double work, Work kind, double target) const {
  if (name.find(filter_) == std::string::npos) return;
  const double mine = seconds_of(ours, inputs);
  print(name, mine, seconds_of(plain, inputs), work, kind, target);
}

void Bench::compare_runs(const std::string& name, const std::function<void()>& ours,
                         const std::function<void()>& plain, double work, Work kind) const {
  if (name.find(filter_) == std::string::npos) return;
  const double mine = median_seconds(ours);
  print(name, mine, median_seconds(plain), work, kind, 0.0);
}

void Bench::print(const std::string& name, double mine, double theirs, double work, Work kind,
                  double target) const {
  const double rate = work / mine;
  const bool bytes = kind == Work::kGigabytes;
  fmt::print(
      R"({{"bench":"ops","metric":"{}","value":{:.3f},"unit":"times the rate of ATen","target":{},"ok":{},)"
      R"("cpu_ms":{:.3f},"aten_cpu_ms":{:.3f},"{}":{:.1f},"share":{:.3f}}})"
      "\n",
      name, theirs / mine, target > 0.0 ? fmt::format("{}", target) : "null",
      target > 0.0 ? (theirs / mine >= target ? "true" : "false") : "null", mine * 1e3, theirs * 1e3,
      bytes ? "gb_s" : "gflop_s", rate, rate / (bytes ? bandwidth_ : peak_));
}

at::Tensor leaf(const std::vector<int64_t>& sizes, at::ScalarType type) {
  return at::randn(sizes).to(type).set_requires_grad(true);
}

const char* name_of(at::ScalarType type) {
  return type == at::kFloat ? "fp32" : "bf16";
}

}  // namespace chiliad::bench
