#include "chiliad/observe/fma_peak.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace chiliad::observe {
namespace {

// Rounds of a chain between two looks at the clock: some microseconds.
constexpr int kRounds = 512;
// Chains beside each other: more than latency x instructions a cycle, fewer than there are registers.
constexpr int kChains = 12;

/// Runs kRounds rounds and returns their FLOPs. `sink` keeps the results alive.
using Kernel = double (*)(float& sink);

// Chains begin with values of their own: a compiler makes one of those that are alike.

double run_plain(float& sink) {
  using Lanes = float __attribute__((vector_size(16)));
  Lanes sums[kChains];
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i) sums[i] = Lanes{} + static_cast<float>(i);
  const Lanes a{0.5F, 0.25F, 0.5F, 0.25F};
  for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sums[i] = sums[i] * a + a;
  }
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i) sink += sums[i][0];
  return 2.0 * 4 * kChains * kRounds;
}

#ifdef __x86_64__
__attribute__((target("avx2,fma"))) double run_avx2(float& sink) {
  __m256 sums[kChains];
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i) sums[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 a = _mm256_set1_ps(0.5F);
  for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sums[i] = _mm256_fmadd_ps(sums[i], a, a);
  }
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i) sink += _mm256_cvtss_f32(sums[i]);
  return 2.0 * 8 * kChains * kRounds;
}

__attribute__((target("avx512f"))) double run_avx512(float& sink) {
  __m512 sums[kChains];
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  const __m512 a = _mm512_set1_ps(0.5F);
  for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sums[i] = _mm512_fmadd_ps(sums[i], a, a);
  }
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i) sink += _mm512_cvtss_f32(sums[i]);
  return 2.0 * 16 * kChains * kRounds;
}

__attribute__((target("avx512f,avx512bf16"))) double run_avx512_bf16(float& sink) {
  __m512 sums[kChains];
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  const auto a = _mm512_cvtne2ps_pbh(sums[1], sums[1]);
  for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sums[i] = _mm512_dpbf16_ps(sums[i], a, a);
  }
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i) sink += _mm512_cvtss_f32(sums[i]);
  return 2.0 * 32 * kChains * kRounds;
}

bool has_amx_bf16() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  constexpr unsigned kFeatures = 7;
  constexpr unsigned kAmxBf16 = 1U << 22;
  return __get_cpuid_count(kFeatures, 0, &a, &b, &c, &d) != 0 && (d & kAmxBf16) != 0;
}

Kernel fp32_kernel() {
  if (__builtin_cpu_supports("avx512f")) return run_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return run_avx2;
  return run_plain;
}

/// Null where there are no such instructions.
Kernel bf16_kernel() {
  return __builtin_cpu_supports("avx512bf16") ? run_avx512_bf16 : nullptr;
}
#else
bool has_amx_bf16() {
  return false;
}
Kernel fp32_kernel() {
  return run_plain;
}
Kernel bf16_kernel() {
  return nullptr;
}
#endif

/// FLOPs of each window on this thread.
std::vector<double> run_windows(Kernel kernel, const PeakRequest& request, Nanoseconds start) {
  const SystemClock clock;
  float sink = 0.0F;
  std::vector<double> flops(static_cast<size_t>(request.num_windows), 0.0);
  while (clock.now() < start) (void)kernel(sink);
  for (size_t window = 0; window < flops.size();) {
    flops[window] += kernel(sink);
    const auto past = clock.now() - start;
    window = std::max(window, static_cast<size_t>(past / request.window));
  }
  static std::atomic<float> kept;
  kept.store(sink, std::memory_order_relaxed);
  return flops;
}

double measure(Kernel kernel, const PeakRequest& request) {
  const Nanoseconds start = SystemClock().now() + request.window;  // the clock rate of a busy core settles
  std::vector<std::vector<double>> by_thread(static_cast<size_t>(request.num_threads));
  std::vector<std::thread> threads;
  for (size_t i = 1; i < by_thread.size(); ++i)
    threads.emplace_back([&, i] { by_thread[i] = run_windows(kernel, request, start); });
  by_thread[0] = run_windows(kernel, request, start);
  for (auto& thread : threads) thread.join();
  double best = 0.0;
  for (size_t window = 0; window < by_thread[0].size(); ++window) {
    double sum = 0.0;
    for (const auto& flops : by_thread) sum += flops[window];
    best = std::max(best, sum);
  }
  return best / to_seconds(request.window);
}

}  // namespace

double measure_fma_peak(const PeakRequest& request) {
  if (request.type == FmaType::kF32) return measure(fp32_kernel(), request);
  if (has_amx_bf16()) return 0.0;
  const double fp32 = measure(fp32_kernel(), request);
  const Kernel kernel = bf16_kernel();
  return kernel == nullptr ? fp32 : std::max(fp32, measure(kernel, request));
}

}  // namespace chiliad::observe
