#include "chiliad/ops/cuda/column_sums.cuh"

namespace chiliad::ops::cuda {
namespace {

template <typename T>
__global__ void norm_rows(Runs runs, int64_t width, const T* x, const T* shift, const T* scale, float eps,
                          float* moments, T* out) {
  const int64_t row = blockIdx.x;
  x += row * width;
  out += row * width;
  const int64_t item = item_of(runs, row);
  shift += item * width;
  scale += item * width;
  float total[1] = {0.0F};
  for (int64_t i = threadIdx.x; i < width; i += blockDim.x) total[0] += load(x + i);
  sum_over_block(total);
  const float mean = total[0] / static_cast<float>(width);
  float squares[1] = {0.0F};
  for (int64_t i = threadIdx.x; i < width; i += blockDim.x) {
    const float apart = load(x + i) - mean;
    squares[0] += apart * apart;
  }
  sum_over_block(squares);
  const float root = 1.0F / sqrtf(squares[0] / static_cast<float>(width) + eps);
  for (int64_t i = threadIdx.x; i < width; i += blockDim.x) {
    const float normed = (load(x + i) - mean) * root;
    store(out + i, fmaf(normed, load(scale + i), normed) + load(shift + i));
  }
  if (threadIdx.x == 0) {
    moments[2 * row] = mean;
    moments[2 * row + 1] = root;
  }
}

template <typename T>
__global__ void norm_rows_backward(Runs runs, int64_t width, const T* x, const T* scale, const float* moments,
                                   const T* gradient, T* of_x) {
  const int64_t row = blockIdx.x;
  x += row * width;
  gradient += row * width;
  of_x += row * width;
  scale += item_of(runs, row) * width;
  const float mean = moments[2 * row];
  const float root = moments[2 * row + 1];
  float sums[2] = {0.0F, 0.0F};  // of the inner gradient, and of it along the row
  for (int64_t i = threadIdx.x; i < width; i += blockDim.x) {
    const float upstream = load(gradient + i);
    const float inner = fmaf(upstream, load(scale + i), upstream);
    sums[0] += inner;
    sums[1] = fmaf(inner, (load(x + i) - mean) * root, sums[1]);
  }
  sum_over_block(sums);
  const float of_mean = sums[0] / static_cast<float>(width);
  const float of_root = sums[1] / static_cast<float>(width);
  for (int64_t i = threadIdx.x; i < width; i += blockDim.x) {
    const float upstream = load(gradient + i);
    const float inner = fmaf(upstream, load(scale + i), upstream);
    const float normed = (load(x + i) - mean) * root;
    store(of_x + i, (inner - of_mean - normed * of_root) * root);
  }
}

/// Of shift and scale.
template <typename T>
struct NormTerm {
  const T* x;
  const float* moments;
  const T* gradient;
  int64_t width;
  __device__ void operator()(int64_t row, int64_t column, float (&sums)[2]) const {
    const float upstream = load(gradient + row * width + column);
    const float normed = (load(x + row * width + column) - moments[2 * row]) * moments[2 * row + 1];
    sums[0] += upstream;
    sums[1] = fmaf(upstream, normed, sums[1]);
  }
};

template <typename T>
__global__ void gate_values(Runs runs, int64_t width, int64_t count, const T* x, const T* gate, const T* y,
                            T* out) {
  const int64_t i = flat_index();
  if (i >= count) return;
  const float share = load(gate + item_of(runs, i / width) * width + i % width);
  store(out + i, fmaf(share, load(y + i), load(x + i)));
}

template <typename T>
__global__ void gate_values_backward(Runs runs, int64_t width, int64_t count, const T* gate,
                                     const T* gradient, T* of_y) {
  const int64_t i = flat_index();
  if (i >= count) return;
  store(of_y + i, load(gradient + i) * load(gate + item_of(runs, i / width) * width + i % width));
}

template <typename T>
struct GateTerm {
  const T* y;
  const T* gradient;
  int64_t width;
  __device__ void operator()(int64_t row, int64_t column, float (&sums)[1]) const {
    sums[0] = fmaf(load(gradient + row * width + column), load(y + row * width + column), sums[0]);
  }
};

}  // namespace

int64_t floats_of_sums(const Runs& runs, int64_t width) {
  return Parts(runs).count * runs.count * width;
}

void launch_norm(Stream stream, const Shape& shape, const Runs& runs, const void* x, const void* shift,
                 const void* scale, float eps, float* moments, void* out) {
  if (shape.rows == 0) return;
  with_type(shape.type, [&](auto type) {
    using T = decltype(type);
    norm_rows<T><<<static_cast<unsigned>(shape.rows), threads_of(shape.width), 0, stream>>>(
        runs, shape.width, static_cast<const T*>(x), static_cast<const T*>(shift),
        static_cast<const T*>(scale), eps, moments, static_cast<T*>(out));
  });
}

void launch_norm_backward(Stream stream, const Shape& shape, const Runs& runs, const NormBackward& data) {
  with_type(shape.type, [&](auto type) {
    using T = decltype(type);
    const auto* x = static_cast<const T*>(data.x);
    const auto* gradient = static_cast<const T*>(data.gradient);
    if (shape.rows > 0) {
      norm_rows_backward<T><<<static_cast<unsigned>(shape.rows), threads_of(shape.width), 0, stream>>>(
          runs, shape.width, x, static_cast<const T*>(data.scale), data.moments, gradient,
          static_cast<T*>(data.of_x));
    }
    T* const outs[2] = {static_cast<T*>(data.of_shift), static_cast<T*>(data.of_scale)};
    launch_sums<T>(stream, runs, shape.width, NormTerm<T>{x, data.moments, gradient, shape.width},
                   data.between, outs);
  });
}

void launch_gate(Stream stream, const Shape& shape, const Runs& runs, const void* x, const void* gate,
                 const void* y, void* out) {
  const int64_t count = shape.rows * shape.width;
  if (count == 0) return;
  with_type(shape.type, [&](auto type) {
    using T = decltype(type);
    gate_values<T><<<blocks_of(count), kFlatThreads, 0, stream>>>(
        runs, shape.width, count, static_cast<const T*>(x), static_cast<const T*>(gate),
        static_cast<const T*>(y), static_cast<T*>(out));
  });
}

void launch_gate_backward(Stream stream, const Shape& shape, const Runs& runs, const GateBackward& data) {
  const int64_t count = shape.rows * shape.width;
  with_type(shape.type, [&](auto type) {
    using T = decltype(type);
    const auto* gradient = static_cast<const T*>(data.gradient);
    if (count > 0) {
      gate_values_backward<T><<<blocks_of(count), kFlatThreads, 0, stream>>>(
          runs, shape.width, count, static_cast<const T*>(data.gate), gradient, static_cast<T*>(data.of_y));
    }
    T* const outs[1] = {static_cast<T*>(data.of_gate)};
    launch_sums<T>(stream, runs, shape.width,
                   GateTerm<T>{static_cast<const T*>(data.y), gradient, shape.width}, data.between, outs);
  });
}

}  // namespace chiliad::ops::cuda
