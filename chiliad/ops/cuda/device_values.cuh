// What all kernels use: reading and writing of values, sums over a block.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "chiliad/ops/cuda/kernels.h"

namespace chiliad::ops::cuda {

__device__ inline float load(const float* from) {
  return *from;
}
__device__ inline float load(const __nv_bfloat16* from) {
  return __bfloat162float(*from);
}
__device__ inline float load(const __half* from) {
  return __half2float(*from);
}
__device__ inline void store(float* to, float value) {
  *to = value;
}
__device__ inline void store(__nv_bfloat16* to, float value) {
  *to = __float2bfloat16_rn(value);
}
__device__ inline void store(__half* to, float value) {
  *to = __float2half_rn(value);
}

/// The value as it would be read back from memory of type T.
template <typename T>
__device__ float rounded(float value) {
  T memory;
  store(&memory, value);
  return load(&memory);
}

/// apply(T{}) with the type of values.
template <typename Apply>
void with_type(ValueType type, const Apply& apply) {
  switch (type) {
    case ValueType::kFloat32:
      return apply(float{});
    case ValueType::kBFloat16:
      return apply(__nv_bfloat16{});
    case ValueType::kFloat16:
      return apply(__half{});
  }
}

constexpr int kWarp = 32;
constexpr int kMostThreads = 256;  // of a row
constexpr int kFlatThreads = 256;

/// Threads for a row: a power of two, about eight values each.
inline unsigned threads_of(int64_t width) {
  unsigned threads = kWarp;
  while (threads < kMostThreads && static_cast<int64_t>(threads) * 8 < width) threads *= 2;
  return threads;
}

/// Blocks of kFlatThreads, a value a thread.
inline unsigned blocks_of(int64_t count) {
  return static_cast<unsigned>((count + kFlatThreads - 1) / kFlatThreads);
}

__device__ inline int64_t flat_index() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

/// Sums over the threads of the block, given to all of them. All threads must come here.
template <int kSums>
__device__ void sum_over_block(float (&values)[kSums]) {
  __shared__ float parts[kSums][kMostThreads / kWarp];
  __syncthreads();  // what the call before left is read
  for (int k = 0; k < kSums; ++k) {
    for (int apart = kWarp / 2; apart > 0; apart /= 2)
      values[k] += __shfl_xor_sync(0xffffffffU, values[k], apart);
    if (threadIdx.x % kWarp == 0) parts[k][threadIdx.x / kWarp] = values[k];
  }
  __syncthreads();
  for (int k = 0; k < kSums; ++k) {
    values[k] = 0.0F;
    for (unsigned warp = 0; warp < blockDim.x / kWarp; ++warp) values[k] += parts[k][warp];
  }
}

__device__ inline int64_t begin_of(const Runs& runs, int64_t item) {
  return runs.begins == nullptr ? item * runs.longest : runs.begins[item];
}

/// The item that a row belongs to.
__device__ inline int64_t item_of(const Runs& runs, int64_t row) {
  if (runs.begins == nullptr) return row / runs.longest;
  int64_t low = 0;
  int64_t high = runs.count - 1;
  while (low <
         high) {  // the last item that begins at or before the row: empty ones before it begin there too
    const int64_t middle = (low + high + 1) / 2;
    if (runs.begins[middle] <= row) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace chiliad::ops::cuda
