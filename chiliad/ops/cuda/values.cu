#include "chiliad/ops/cuda/column_sums.cuh"

namespace chiliad::ops::cuda {
namespace {

constexpr float kRootOfTwoOverPi = 0.7978845608028654F;
constexpr float kCubic = 0.044715F;

template <typename T>
__global__ void gelu_values(int64_t count, const T* x, T* out) {
  const int64_t i = flat_index();
  if (i >= count) return;
  const float value = load(x + i);
  const float inner = kRootOfTwoOverPi * (value + kCubic * value * value * value);
  store(out + i, 0.5F * value * (1.0F + tanhf(inner)));
}

template <typename T>
__global__ void gelu_values_backward(int64_t count, int64_t width, const T* x, const T* gradient,
                                     int64_t stride, T* of_x) {
  const int64_t i = flat_index();
  if (i >= count) return;
  const float value = load(x + i);
  const float square = value * value;
  const float bent = tanhf(kRootOfTwoOverPi * (value + kCubic * square * value));
  const float steep = kRootOfTwoOverPi * (1.0F + 3.0F * kCubic * square);
  const float slope = 0.5F * (1.0F + bent) + 0.5F * value * (1.0F - bent * bent) * steep;
  store(of_x + i, load(gradient + i / width * stride + i % width) * slope);
}

template <typename T>
__global__ void rms_rows(int64_t width, const T* x, const T* weight, float eps, float* scales, T* out) {
  const int64_t row = blockIdx.x;
  x += row * width;
  out += row * width;
  float squares[1] = {0.0F};
  for (int64_t i = threadIdx.x; i < width; i += blockDim.x) {
    const float value = load(x + i);
    squares[0] = fmaf(value, value, squares[0]);
  }
  sum_over_block(squares);
  const float scale = 1.0F / sqrtf(squares[0] / static_cast<float>(width) + eps);
  for (int64_t i = threadIdx.x; i < width; i += blockDim.x)
    store(out + i, rounded<T>(load(x + i) * scale) * load(weight + i));  // as the reference has it
  if (threadIdx.x == 0) scales[row] = scale;
}

template <typename T>
__global__ void rms_rows_backward(int64_t width, const T* x, const T* weight, const float* scales,
                                  const T* gradient, T* of_x) {
  const int64_t row = blockIdx.x;
  x += row * width;
  gradient += row * width;
  of_x += row * width;
  const float scale = scales[row];
  float along[1] = {0.0F};
  for (int64_t i = threadIdx.x; i < width; i += blockDim.x)
    along[0] = fmaf(load(gradient + i) * load(weight + i), load(x + i) * scale, along[0]);
  sum_over_block(along);
  const float mean = along[0] / static_cast<float>(width);
  for (int64_t i = threadIdx.x; i < width; i += blockDim.x) {
    const float inner = load(gradient + i) * load(weight + i);
    store(of_x + i, (inner - load(x + i) * scale * mean) * scale);
  }
}

template <typename T>
struct RmsTerm {
  const T* x;
  const float* scale;
  const T* gradient;
  int64_t width;
  __device__ void operator()(int64_t row, int64_t column, float (&sums)[1]) const {
    sums[0] =
        fmaf(load(gradient + row * width + column), load(x + row * width + column) * scale[row], sums[0]);
  }
};

/// A pair a thread.
template <typename T>
__global__ void turn_values(int64_t pairs, int64_t pairs_a_row, int64_t positions, int64_t angles, const T* x,
                            const float* cos, const float* sin, float sign, T* out) {
  const int64_t i = flat_index();
  if (i >= pairs) return;
  const int64_t angle = i / pairs_a_row % positions * angles + i % pairs_a_row % angles;
  const float c = cos[angle];
  const float s = sin[angle] * sign;
  const float a = load(x + 2 * i);
  const float b = load(x + 2 * i + 1);
  store(out + 2 * i, a * c - b * s);
  store(out + 2 * i + 1, b * c + a * s);
}

}  // namespace

void launch_gelu(Stream stream, const Shape& shape, const void* x, void* out) {
  const int64_t count = shape.rows * shape.width;
  if (count == 0) return;
  with_type(shape.type, [&](auto type) {
    using T = decltype(type);
    gelu_values<T><<<blocks_of(count), kFlatThreads, 0, stream>>>(count, static_cast<const T*>(x),
                                                                  static_cast<T*>(out));
  });
}

void launch_gelu_backward(Stream stream, const Shape& shape, const void* x, const void* gradient,
                          int64_t stride, void* of_x) {
  const int64_t count = shape.rows * shape.width;
  if (count == 0) return;
  with_type(shape.type, [&](auto type) {
    using T = decltype(type);
    gelu_values_backward<T><<<blocks_of(count), kFlatThreads, 0, stream>>>(
        count, shape.width, static_cast<const T*>(x), static_cast<const T*>(gradient), stride,
        static_cast<T*>(of_x));
  });
}

void launch_rms_norm(Stream stream, const Shape& shape, const void* x, const void* weight, float eps,
                     float* scale, void* out) {
  if (shape.rows == 0) return;
  with_type(shape.type, [&](auto type) {
    using T = decltype(type);
    rms_rows<T><<<static_cast<unsigned>(shape.rows), threads_of(shape.width), 0, stream>>>(
        shape.width, static_cast<const T*>(x), static_cast<const T*>(weight), eps, scale,
        static_cast<T*>(out));
  });
}

void launch_rms_norm_backward(Stream stream, const Shape& shape, const RmsNormBackward& data) {
  with_type(shape.type, [&](auto type) {
    using T = decltype(type);
    const auto* x = static_cast<const T*>(data.x);
    const auto* gradient = static_cast<const T*>(data.gradient);
    if (shape.rows > 0) {
      rms_rows_backward<T><<<static_cast<unsigned>(shape.rows), threads_of(shape.width), 0, stream>>>(
          shape.width, x, static_cast<const T*>(data.weight), data.scale, gradient,
          static_cast<T*>(data.of_x));
    }
    T* const outs[1] = {static_cast<T*>(data.of_weight)};
    launch_sums<T>(stream, Runs{1, shape.rows, nullptr}, shape.width,
                   RmsTerm<T>{x, data.scale, gradient, shape.width}, data.between, outs);
  });
}

void launch_turn_pairs(Stream stream, const Shape& shape, int64_t positions, int64_t angles, const void* x,
                       const float* cos, const float* sin, bool back, void* out) {
  const int64_t pairs = shape.rows * shape.width / 2;
  if (pairs == 0) return;
  with_type(shape.type, [&](auto type) {
    using T = decltype(type);
    turn_values<T><<<blocks_of(pairs), kFlatThreads, 0, stream>>>(pairs, shape.width / 2, positions, angles,
                                                                  static_cast<const T*>(x), cos, sin,
                                                                  back ? -1.0F : 1.0F, static_cast<T*>(out));
  });
}

}  // namespace chiliad::ops::cuda
