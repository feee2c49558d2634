#include "chiliad/ops/attention.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <numeric>

#include "chiliad/base/error.h"
#include "chiliad/ops/cpu/attention.h"
#include "chiliad/ops/cpu/tensor_rows.h"
#include "chiliad/ops/cuda/flash_attention.h"

namespace chiliad::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

at::Tensor split_heads(const at::Tensor& x, int64_t heads) {
  return x.view({x.size(0), x.size(1), heads, x.size(2) / heads})
      .transpose(1, 2);  // [B, heads, N, D / heads]
}

/// Blocks as lengths of queries and keys in turns.
std::vector<cpu::AttentionBlock> blocks_of(const std::vector<int64_t>& lengths) {
  std::vector<cpu::AttentionBlock> blocks;
  cpu::AttentionBlock next;
  for (size_t i = 0; i < lengths.size(); i += 2) {
    next.num_queries = lengths[i];
    next.num_keys = lengths[i + 1];
    blocks.push_back(next);
    next.first_query += next.num_queries;
    next.first_key += next.num_keys;
  }
  return blocks;
}

struct BlockAttention : public torch::autograd::Function<BlockAttention> {
  static Variable forward(AutogradContext* context, const Variable& q, const Variable& k, const Variable& v,
                          int64_t heads, const std::optional<at::Tensor>& key_mask,
                          const std::vector<int64_t>& lengths) {
    const at::Tensor mask = key_mask.value_or(at::Tensor());
    const auto output = cpu::attention_forward(input_of(q, k, v, heads, mask, lengths));
    const at::Tensor out = output.out.view(q.sizes());
    context->save_for_backward({q, k, v, out, output.log_sum});
    context->saved_data["heads"] = heads;
    context->saved_data["lengths"] = lengths;
    context->saved_data["mask"] = mask;
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto input =
        input_of(saved[0], saved[1], saved[2], context->saved_data["heads"].toInt(),
                 context->saved_data["mask"].toTensor(), context->saved_data["lengths"].toIntVector());
    const auto of =
        cpu::attention_backward(input, {cpu::as_rows(saved[3]), saved[4]}, cpu::as_rows(gradients[0]));
    return {
        of.q.view(saved[0].sizes()), of.k.view(saved[1].sizes()), of.v.view(saved[2].sizes()), {}, {}, {}};
  }

 private:
  static cpu::AttentionInput input_of(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                      int64_t heads, const at::Tensor& mask,
                                      const std::vector<int64_t>& lengths) {
    return {cpu::as_rows(q), cpu::as_rows(k), cpu::as_rows(v), heads, blocks_of(lengths), mask};
  }
};

}  // namespace

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                     const at::Tensor& key_mask) {
  if (!cpu::takes({q, k, v})) return plain::attention(q, k, v, heads, key_mask);
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < q.size(0); ++i) lengths.insert(lengths.end(), {q.size(1), k.size(1)});
  std::optional<at::Tensor> mask;
  if (key_mask.defined()) mask = key_mask.contiguous();
  return BlockAttention::apply(q, k, v, heads, mask, lengths);
}

at::Tensor packed_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                            const std::vector<int64_t>& query_lengths,
                            const std::vector<int64_t>& key_lengths) {
  CHILIAD_CHECK_EQ(query_lengths.size(), key_lengths.size());
  CHILIAD_CHECK_EQ(std::accumulate(query_lengths.begin(), query_lengths.end(), int64_t{0}), q.size(0));
  CHILIAD_CHECK_EQ(std::accumulate(key_lengths.begin(), key_lengths.end(), int64_t{0}), k.size(0));
  if (cuda::takes_packs(q, k, v, heads))
    return cuda::packed_attention(q, k, v, heads, query_lengths, key_lengths);
  if (!cpu::takes({q, k, v})) return plain::packed_attention(q, k, v, heads, query_lengths, key_lengths);
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < query_lengths.size(); ++i)
    lengths.insert(lengths.end(), {query_lengths[i], key_lengths[i]});
  return BlockAttention::apply(q, k, v, heads, std::optional<at::Tensor>(), lengths);
}

namespace plain {

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                     const at::Tensor& key_mask) {
  std::optional<at::Tensor> mask;
  if (key_mask.defined()) {
    mask = key_mask.view({key_mask.size(0), 1, 1, key_mask.size(1)});  // broadcast: nothing of size N x M
  }
  const at::Tensor out = at::scaled_dot_product_attention(split_heads(q, heads), split_heads(k, heads),
                                                          split_heads(v, heads), mask);
  return out.transpose(1, 2).reshape(q.sizes());
}

at::Tensor packed_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                            const std::vector<int64_t>& query_lengths,
                            const std::vector<int64_t>& key_lengths) {
  const auto queries = q.split_with_sizes(query_lengths, 0);
  const auto keys = k.split_with_sizes(key_lengths, 0);
  const auto values = v.split_with_sizes(key_lengths, 0);
  std::vector<at::Tensor> parts;
  for (size_t i = 0; i < queries.size(); ++i) {
    if (query_lengths[i] == 0) continue;
    parts.push_back(
        attention(queries[i].unsqueeze(0), keys[i].unsqueeze(0), values[i].unsqueeze(0), heads, {})
            .squeeze(0));
  }
  return parts.empty() ? q : at::cat(parts, 0);
}

}  // namespace plain
}  // namespace chiliad::ops
