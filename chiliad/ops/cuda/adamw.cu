#include <cuda_runtime_api.h>

#include "chiliad/ops/cuda/adamw.h"

namespace chiliad::ops::cuda {
namespace {

constexpr int kThreads = 256;

/// The operations of ops/adamw.cpp in its order; the intrinsics are never contracted.
__global__ void adamw_values(AdamWFloats n, int64_t count, float* param, const float* grad, float* exp_avg,
                             float* exp_avg_sq, float* average) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float g = __fmul_rn(grad[i], n.scale);
  const float m = __fadd_rn(__fmul_rn(n.keep1, exp_avg[i]), __fmul_rn(n.new1, g));
  const float v = __fadd_rn(__fmul_rn(n.keep2, exp_avg_sq[i]), __fmul_rn(n.new2, __fmul_rn(g, g)));
  exp_avg[i] = m;
  exp_avg_sq[i] = v;
  const float root = __fadd_rn(__fdiv_rn(__fsqrt_rn(v), n.root_correction2), n.eps);
  const float p = __fsub_rn(__fmul_rn(param[i], n.shrink), __fmul_rn(n.step_size, __fdiv_rn(m, root)));
  param[i] = p;
  if (average != nullptr)
    average[i] = __fadd_rn(average[i], __fmul_rn(n.new_average, __fsub_rn(p, average[i])));
}

}  // namespace

void launch_adamw(CUstream_st* stream, const AdamWFloats& numbers, int64_t count, float* param,
                  const float* grad, float* exp_avg, float* exp_avg_sq, float* average) {
  if (count == 0) return;
  const auto blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
  adamw_values<<<blocks, kThreads, 0, stream>>>(numbers, count, param, grad, exp_avg, exp_avg_sq, average);
}

}  // namespace chiliad::ops::cuda
