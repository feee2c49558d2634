#pragma once

#include <cstdint>

struct CUstream_st;  // what cudaStream_t points to

/// Launches of the kernels, over memory of the current device; they return before the work is done. Sums have
/// an order that depends on the sizes alone: no atomics.
namespace chiliad::ops::cuda {

using Stream = CUstream_st*;

/// Values are read and written in this type; arithmetic is fp32.
enum class ValueType { kFloat32, kBFloat16, kFloat16 };

/// Dense rows of values.
struct Shape {
  ValueType type;
  int64_t rows;
  int64_t width;
};

/// Runs of rows that share a modulation, one an item.
struct Runs {
  int64_t count;
  int64_t longest;        ///< rows of the longest; of all runs where `begins` is null
  const int64_t* begins;  ///< [count + 1] on the device, or null
};

/// Floats that a sum over the rows of each run needs in between, for each sum.
[[nodiscard]] int64_t floats_of_sums(const Runs& runs, int64_t width);

/// out and moments [rows, 2] (mean, 1 / sqrt(variance + eps)) of a modulated layer norm.
void launch_norm(Stream stream, const Shape& shape, const Runs& runs, const void* x, const void* shift,
                 const void* scale, float eps, float* moments, void* out);

struct NormBackward {
  const void* x;
  const void* scale;
  const float* moments;
  const void* gradient;
  float* between;  ///< 2 * floats_of_sums
  void* of_x;
  void* of_shift;
  void* of_scale;
};
void launch_norm_backward(Stream stream, const Shape& shape, const Runs& runs, const NormBackward& data);

/// out = x + gate * y
void launch_gate(Stream stream, const Shape& shape, const Runs& runs, const void* x, const void* gate,
                 const void* y, void* out);

struct GateBackward {
  const void* gate;
  const void* y;
  const void* gradient;
  float* between;  ///< floats_of_sums
  void* of_gate;
  void* of_y;
};
void launch_gate_backward(Stream stream, const Shape& shape, const Runs& runs, const GateBackward& data);

void launch_gelu(Stream stream, const Shape& shape, const void* x, void* out);
/// Rows of the gradient are `stride` values apart.
void launch_gelu_backward(Stream stream, const Shape& shape, const void* x, const void* gradient,
                          int64_t stride, void* of_x);

/// out, and scale [rows]: 1 / root mean square.
void launch_rms_norm(Stream stream, const Shape& shape, const void* x, const void* weight, float eps,
                     float* scale, void* out);

struct RmsNormBackward {
  const void* x;
  const void* weight;
  const float* scale;
  const void* gradient;
  float* between;  ///< floats_of_sums of one run of all rows
  void* of_x;
  void* of_weight;
};
void launch_rms_norm_backward(Stream stream, const Shape& shape, const RmsNormBackward& data);

/// x: rows of heads of 2 * angles values; row r has position r % positions; cos, sin: [positions, angles].
void launch_turn_pairs(Stream stream, const Shape& shape, int64_t positions, int64_t angles, const void* x,
                       const float* cos, const float* sin, bool back, void* out);

}  // namespace chiliad::ops::cuda
