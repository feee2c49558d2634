#include "chiliad/ops/cuda/flash_attention.h"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "chiliad/ops/cuda/values.h"

namespace chiliad::ops::cuda {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

constexpr int64_t kMostHeadSize = 256;

/// ATen's flash attention asks the process whether its backward may add in any order. The setting is of all
/// threads: one at a time changes it, for the time of a launch.
class FixedOrder {
 public:
  FixedOrder()
      : lock_(mutex()),
        was_fixed_(context().deterministicAlgorithms()),
        was_warning_(context().deterministicAlgorithmsWarnOnly()),
        was_filling_(context().deterministicFillUninitializedMemory()) {
    context().setDeterministicFillUninitializedMemory(false);
    context().setDeterministicAlgorithms(true, false);
  }
  ~FixedOrder() {
    context().setDeterministicAlgorithms(was_fixed_, was_warning_);
    context().setDeterministicFillUninitializedMemory(was_filling_);
  }
  FixedOrder(const FixedOrder&) = delete;
  FixedOrder& operator=(const FixedOrder&) = delete;

 private:
  static std::mutex& mutex() {
    static std::mutex only;
    return only;
  }
  static at::Context& context() { return at::globalContext(); }
  std::lock_guard<std::mutex> lock_;
  bool was_fixed_;
  bool was_warning_;
  bool was_filling_;
};

/// 0 and where each item ends, int32, on the device.
at::Tensor ends_of(const std::vector<int64_t>& lengths, at::Device device) {
  const auto count = static_cast<int64_t>(lengths.size());
  const at::Tensor ends = at::empty({count + 1}, at::TensorOptions(at::kInt).pinned_memory(true));
  auto* next = ends.mutable_data_ptr<int32_t>();
  next[0] = 0;
  for (size_t i = 0; i < lengths.size(); ++i) next[i + 1] = next[i] + static_cast<int32_t>(lengths[i]);
  return ends.to(device, /*non_blocking=*/true);
}

int64_t longest(const std::vector<int64_t>& lengths) {
  return *std::max_element(lengths.begin(), lengths.end());
}

/// [rows, D] as [rows, heads, D / heads]; rows may lie apart.
at::Tensor with_heads(const at::Tensor& x, int64_t heads) {
  return (x.stride(-1) == 1 ? x : x.contiguous()).view({x.size(0), heads, x.size(1) / heads});
}

struct FlashAttention : public torch::autograd::Function<FlashAttention> {
  static Variable forward(AutogradContext* context, const Variable& q, const Variable& k, const Variable& v,
                          int64_t heads, const std::vector<int64_t>& query_lengths,
                          const std::vector<int64_t>& key_lengths) {
    const at::Tensor query_ends = ends_of(query_lengths, q.device());
    const at::Tensor key_ends = ends_of(key_lengths, q.device());
    const int64_t most_queries = longest(query_lengths);
    const int64_t most_keys = longest(key_lengths);
    const auto made =
        at::_flash_attention_forward(with_heads(q, heads), with_heads(k, heads), with_heads(v, heads),
                                     query_ends, key_ends, most_queries, most_keys, 0.0, false, false);
    const at::Tensor out = std::get<0>(made).reshape(q.sizes());
    context->save_for_backward(
        {q, k, v, out, std::get<1>(made), std::get<2>(made), std::get<3>(made), query_ends, key_ends});
    context->saved_data["heads"] = heads;
    context->saved_data["most_queries"] = most_queries;
    context->saved_data["most_keys"] = most_keys;
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const int64_t heads = context->saved_data["heads"].toInt();
    const FixedOrder fixed;
    const auto [of_q, of_k, of_v] = at::_flash_attention_backward(
        with_heads(gradients[0].contiguous(), heads), with_heads(saved[0], heads),
        with_heads(saved[1], heads), with_heads(saved[2], heads), with_heads(saved[3], heads), saved[4],
        saved[7], saved[8], context->saved_data["most_queries"].toInt(),
        context->saved_data["most_keys"].toInt(), 0.0, false, saved[5], saved[6]);
    return {of_q.reshape(saved[0].sizes()),
            of_k.reshape(saved[1].sizes()),
            of_v.reshape(saved[2].sizes()),
            {},
            {},
            {}};
  }
};

}  // namespace

bool takes_packs(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads) {
  constexpr int kAmpere = 8;
  const int64_t size = q.size(-1) / heads;
  return takes_values({q, k, v}) && q.scalar_type() != at::kFloat && size % 8 == 0 && size <= kMostHeadSize &&
         q.numel() > 0 && at::cuda::getDeviceProperties(q.get_device())->major >= kAmpere;
}

at::Tensor packed_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                            const std::vector<int64_t>& query_lengths,
                            const std::vector<int64_t>& key_lengths) {
  return FlashAttention::apply(q, k, v, heads, query_lengths, key_lengths);
}

}  // namespace chiliad::ops::cuda
