// Stands for the kernels in builds without CUDA.
#include "chiliad/base/error.h"
#include "chiliad/ops/cuda/adamw.h"
#include "chiliad/ops/cuda/flash_attention.h"
#include "chiliad/ops/cuda/values.h"

namespace chiliad::ops::cuda {
namespace {

[[noreturn]] void refuse() {
  throw InternalError("operators", "this build has no kernels for GPUs. Build the cuda preset");
}

}  // namespace

bool takes_values(const std::vector<at::Tensor>&) {
  return false;
}
NormOutput norm_forward(const cpu::NormInput&, double) {
  refuse();
}
cpu::NormInput norm_backward(const cpu::NormInput&, const at::Tensor&, const at::Tensor&) {
  refuse();
}
at::Tensor gate_forward(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                        const std::vector<int64_t>&) {
  refuse();
}
std::pair<at::Tensor, at::Tensor> gate_backward(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                                const std::vector<int64_t>&) {
  refuse();
}
at::Tensor gelu_forward(const at::Tensor&) {
  refuse();
}
at::Tensor gelu_backward(const at::Tensor&, const at::Tensor&) {
  refuse();
}
cpu::RmsNormOutput rms_norm_forward(const at::Tensor&, const at::Tensor&, double) {
  refuse();
}
std::pair<at::Tensor, at::Tensor> rms_norm_backward(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                                    const at::Tensor&) {
  refuse();
}
at::Tensor turn_pairs(const at::Tensor&, const at::Tensor&, const at::Tensor&, bool) {
  refuse();
}
void adamw(const AdamWStep&, int64_t, float*, const float*, float*, float*, float*) {
  refuse();
}
bool takes_packs(const at::Tensor&, const at::Tensor&, const at::Tensor&, int64_t) {
  return false;
}
at::Tensor packed_attention(const at::Tensor&, const at::Tensor&, const at::Tensor&, int64_t,
                            const std::vector<int64_t>&, const std::vector<int64_t>&) {
  refuse();
}

}  // namespace chiliad::ops::cuda
