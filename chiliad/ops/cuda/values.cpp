#include "chiliad/ops/cuda/values.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <cstdlib>

#include "chiliad/base/error.h"
#include "chiliad/ops/cuda/adamw.h"
#include "chiliad/ops/cuda/kernels.h"

namespace chiliad::ops::cuda {
namespace {

Stream current_stream() {
  return c10::cuda::getCurrentCUDAStream().stream();
}

Shape shape_of(const at::Tensor& x) {
  CHILIAD_CHECK(x.dim() == 2 && x.is_contiguous());
  const auto type = x.scalar_type();
  return {type == at::kFloat      ? ValueType::kFloat32
          : type == at::kBFloat16 ? ValueType::kBFloat16
                                  : ValueType::kFloat16,
          x.size(0), x.size(1)};
}

/// Runs whose unequal lengths are on the device, for kernels of the current stream.
class DeviceRuns {
 public:
  DeviceRuns(const at::Tensor& x, int64_t items, const std::vector<int64_t>& lengths)
      : runs_{items, 0, nullptr} {
    if (lengths.empty()) {
      CHILIAD_CHECK(items > 0 && x.size(0) % items == 0);
      runs_.longest = x.size(0) / items;
      return;
    }
    CHILIAD_CHECK_EQ(static_cast<int64_t>(lengths.size()), items);
    const at::Tensor begins = at::empty({items + 1}, at::TensorOptions(at::kLong).pinned_memory(true));
    auto* next = begins.mutable_data_ptr<int64_t>();
    next[0] = 0;
    for (size_t i = 0; i < lengths.size(); ++i) next[i + 1] = next[i] + lengths[i];
    CHILIAD_CHECK_EQ(next[items], x.size(0));
    runs_.longest = *std::max_element(lengths.begin(), lengths.end());
    begins_ = begins.to(x.device(), /*non_blocking=*/true);
    runs_.begins = begins_.const_data_ptr<int64_t>();
  }
  [[nodiscard]] const Runs& runs() const { return runs_; }
  /// Memory for `sums` sums of the runs.
  [[nodiscard]] at::Tensor between(const at::Tensor& x, int64_t sums) const {
    return at::empty({sums * floats_of_sums(runs_, x.size(1))}, x.options().dtype(at::kFloat));
  }

 private:
  Runs runs_;
  at::Tensor begins_;
};

}  // namespace

bool takes_values(const std::vector<at::Tensor>& tensors) {
  static const bool switched_off = std::getenv("CHILIAD_PLAIN_OPS") != nullptr;
  const at::Tensor& first = tensors.front();
  if (switched_off || !first.is_cuda()) return false;
  const auto type = first.scalar_type();
  if (type != at::kBFloat16 && type != at::kFloat && type != at::kHalf) return false;
  return std::all_of(tensors.begin(), tensors.end(), [&](const at::Tensor& tensor) {
    return !tensor.defined() || (tensor.device() == first.device() && tensor.scalar_type() == type);
  });
}

NormOutput norm_forward(const cpu::NormInput& input, double eps) {
  const c10::cuda::CUDAGuard guard(input.x.device());
  const DeviceRuns runs(input.x, input.shift.size(0), input.lengths);
  NormOutput result{at::empty_like(input.x),
                    at::empty({input.x.size(0), 2}, input.x.options().dtype(at::kFloat))};
  launch_norm(current_stream(), shape_of(input.x), runs.runs(), input.x.const_data_ptr(),
              input.shift.const_data_ptr(), input.scale.const_data_ptr(), static_cast<float>(eps),
              result.moments.mutable_data_ptr<float>(), result.out.mutable_data_ptr());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return result;
}

cpu::NormInput norm_backward(const cpu::NormInput& input, const at::Tensor& moments,
                             const at::Tensor& gradient) {
  const c10::cuda::CUDAGuard guard(input.x.device());
  const DeviceRuns runs(input.x, input.shift.size(0), input.lengths);
  CHILIAD_CHECK(gradient.is_contiguous() && gradient.scalar_type() == input.x.scalar_type());
  const cpu::NormInput result{at::empty_like(input.x), at::empty_like(input.shift),
                              at::empty_like(input.scale)};
  const at::Tensor between = runs.between(input.x, 2);
  launch_norm_backward(
      current_stream(), shape_of(input.x), runs.runs(),
      {input.x.const_data_ptr(), input.scale.const_data_ptr(), moments.const_data_ptr<float>(),
       gradient.const_data_ptr(), between.mutable_data_ptr<float>(), result.x.mutable_data_ptr(),
       result.shift.mutable_data_ptr(), result.scale.mutable_data_ptr()});
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return result;
}

at::Tensor gate_forward(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& y,
                        const std::vector<int64_t>& lengths) {
  const c10::cuda::CUDAGuard guard(x.device());
  const DeviceRuns runs(x, gate.size(0), lengths);
  at::Tensor out = at::empty_like(x);
  launch_gate(current_stream(), shape_of(x), runs.runs(), x.const_data_ptr(), gate.const_data_ptr(),
              y.const_data_ptr(), out.mutable_data_ptr());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

std::pair<at::Tensor, at::Tensor> gate_backward(const at::Tensor& gate, const at::Tensor& y,
                                                const at::Tensor& gradient,
                                                const std::vector<int64_t>& lengths) {
  const c10::cuda::CUDAGuard guard(y.device());
  const DeviceRuns runs(y, gate.size(0), lengths);
  CHILIAD_CHECK(gradient.is_contiguous() && gradient.scalar_type() == y.scalar_type());
  const at::Tensor of_gate = at::empty_like(gate);
  const at::Tensor of_y = at::empty_like(y);
  const at::Tensor between = runs.between(y, 1);
  launch_gate_backward(
      current_stream(), shape_of(y), runs.runs(),
      {gate.const_data_ptr(), y.const_data_ptr(), gradient.const_data_ptr(),
       between.mutable_data_ptr<float>(), of_gate.mutable_data_ptr(), of_y.mutable_data_ptr()});
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {of_gate, of_y};
}

at::Tensor gelu_forward(const at::Tensor& x) {
  const c10::cuda::CUDAGuard guard(x.device());
  at::Tensor out = at::empty_like(x);
  launch_gelu(current_stream(), shape_of(x.view({1, -1})), x.const_data_ptr(), out.mutable_data_ptr());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

at::Tensor gelu_backward(const at::Tensor& x, const at::Tensor& gradient) {
  const c10::cuda::CUDAGuard guard(x.device());
  at::Tensor of_x = at::empty_like(x);
  launch_gelu_backward(current_stream(), shape_of(x), x.const_data_ptr(), gradient.const_data_ptr(),
                       gradient.stride(0), of_x.mutable_data_ptr());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return of_x;
}

cpu::RmsNormOutput rms_norm_forward(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const c10::cuda::CUDAGuard guard(x.device());
  cpu::RmsNormOutput result{at::empty_like(x), at::empty({x.size(0)}, x.options().dtype(at::kFloat))};
  launch_rms_norm(current_stream(), shape_of(x), x.const_data_ptr(), weight.const_data_ptr(),
                  static_cast<float>(eps), result.scale.mutable_data_ptr<float>(),
                  result.out.mutable_data_ptr());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return result;
}

std::pair<at::Tensor, at::Tensor> rms_norm_backward(const at::Tensor& x, const at::Tensor& weight,
                                                    const at::Tensor& scale, const at::Tensor& gradient) {
  const c10::cuda::CUDAGuard guard(x.device());
  CHILIAD_CHECK(gradient.is_contiguous() && gradient.scalar_type() == x.scalar_type());
  const at::Tensor of_x = at::empty_like(x);
  const at::Tensor of_weight = at::empty_like(weight);
  const at::Tensor between = DeviceRuns(x, 1, {}).between(x, 1);
  launch_rms_norm_backward(
      current_stream(), shape_of(x),
      {x.const_data_ptr(), weight.const_data_ptr(), scale.const_data_ptr<float>(), gradient.const_data_ptr(),
       between.mutable_data_ptr<float>(), of_x.mutable_data_ptr(), of_weight.mutable_data_ptr()});
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {of_x, of_weight};
}

at::Tensor turn_pairs(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, bool back) {
  const c10::cuda::CUDAGuard guard(x.device());
  at::Tensor out = at::empty_like(x);
  launch_turn_pairs(current_stream(), shape_of(x.view({-1, x.size(-1)})), x.size(1), cos.size(1),
                    x.const_data_ptr(), cos.const_data_ptr<float>(), sin.const_data_ptr<float>(), back,
                    out.mutable_data_ptr());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

void adamw(const AdamWStep& options, int64_t count, float* param, const float* grad, float* exp_avg,
           float* exp_avg_sq, float* average) {
  launch_adamw(current_stream(), floats_of(options), count, param, grad, exp_avg, exp_avg_sq, average);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace chiliad::ops::cuda
