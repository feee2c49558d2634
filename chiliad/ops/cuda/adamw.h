#pragma once

#include <cstdint>

#include "chiliad/ops/adamw.h"

struct CUstream_st;  // what cudaStream_t points to

namespace chiliad::ops::cuda {

/// ops::adamw over memory of the current device, on its current stream: the same bits as on the CPU.
void adamw(const AdamWStep& options, int64_t count, float* param, const float* grad, float* exp_avg,
           float* exp_avg_sq, float* average);

void launch_adamw(CUstream_st* stream, const AdamWFloats& numbers, int64_t count, float* param,
                  const float* grad, float* exp_avg, float* exp_avg_sq, float* average);

}  // namespace chiliad::ops::cuda
