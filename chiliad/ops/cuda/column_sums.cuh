// Sums over the rows of each run in a fixed order: by parts of rows, then over the parts.
#pragma once

#include "chiliad/ops/cuda/device_values.cuh"

namespace chiliad::ops::cuda {

constexpr int kColumns = 32;  // of a block
constexpr int kLanes = 8;     // rows at once of a block
constexpr int64_t kLeastRows = 128;
constexpr int64_t kMostParts = 256;

struct Parts {
  explicit Parts(const Runs& runs)
      : rows(runs.longest > kLeastRows * kMostParts ? (runs.longest + kMostParts - 1) / kMostParts
                                                    : kLeastRows),
        count(runs.longest > 0 ? (runs.longest + rows - 1) / rows : 1) {}
  int64_t rows;   // of one
  int64_t count;  // of the longest run
};

/// between: [parts, kSums, runs, width]; term(row, column, sums) adds to kSums sums.
template <int kSums, typename Term>
__global__ void sum_parts(Term term, Runs runs, int64_t rows_a_part, int64_t width, float* between) {
  __shared__ float lanes[kSums][kLanes][kColumns];
  const int64_t item = blockIdx.x;
  const int64_t column = static_cast<int64_t>(blockIdx.y) * kColumns + threadIdx.x;
  const int64_t begin = begin_of(runs, item) + blockIdx.z * rows_a_part;
  const int64_t run_end = begin_of(runs, item + 1);
  const int64_t end = begin + rows_a_part < run_end ? begin + rows_a_part : run_end;
  float sums[kSums] = {};
  if (column < width) {
    for (int64_t row = begin + threadIdx.y; row < end; row += kLanes) term(row, column, sums);
  }
  for (int k = 0; k < kSums; ++k) lanes[k][threadIdx.y][threadIdx.x] = sums[k];
  __syncthreads();
  if (threadIdx.y != 0 || column >= width) return;
  for (int k = 0; k < kSums; ++k) {
    float total = 0.0F;
    for (int lane = 0; lane < kLanes; ++lane) total += lanes[k][lane][threadIdx.x];
    between[((static_cast<int64_t>(blockIdx.z) * kSums + k) * runs.count + item) * width + column] = total;
  }
}

/// Of sum k, by parts in their order.
template <typename T>
__global__ void add_parts(const float* between, int64_t parts, int64_t apart, int64_t count, T* out) {
  const int64_t i = flat_index();
  if (i >= count) return;
  float total = 0.0F;
  for (int64_t part = 0; part < parts; ++part) total += between[part * apart + i];
  store(out + i, total);
}

/// outs: kSums of [runs, width]
template <typename T, int kSums, typename Term>
void launch_sums(Stream stream, const Runs& runs, int64_t width, const Term& term, float* between,
                 T* const (&outs)[kSums]) {
  const int64_t count = runs.count * width;
  if (count == 0) return;
  const Parts parts(runs);
  const dim3 grid(static_cast<unsigned>(runs.count), static_cast<unsigned>((width + kColumns - 1) / kColumns),
                  static_cast<unsigned>(parts.count));
  sum_parts<kSums><<<grid, dim3(kColumns, kLanes), 0, stream>>>(term, runs, parts.rows, width, between);
  for (int k = 0; k < kSums; ++k) {
    add_parts<T><<<blocks_of(count), kFlatThreads, 0, stream>>>(between + k * count, parts.count,
                                                                kSums * count, count, outs[k]);
  }
}

}  // namespace chiliad::ops::cuda
