#include "chiliad/ops/varlen_attention.h"

#include <ATen/ATen.h>

#include "chiliad/base/error.h"

namespace chiliad::ops {
namespace {

/// x: [L, H, d].   returns: [H_kv, H / H_kv, L, d], a view
at::Tensor by_group(const at::Tensor& x, int64_t num_groups) {
  return x.view({x.size(0), num_groups, x.size(1) / num_groups, x.size(2)}).permute({1, 2, 0, 3});
}

/// The key heads are the batch and repeat over their query heads without a copy.
/// returns: [L, H_kv, H / H_kv, d], a view of what autograd keeps
at::Tensor document_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const int64_t groups = k.size(1);
  const at::Tensor grouped = by_group(q, groups);
  const auto sizes = grouped.sizes();
  const at::Tensor out =
      at::scaled_dot_product_attention(grouped, by_group(k, groups).expand(sizes),
                                       by_group(v, groups).expand(sizes), {}, 0.0, /*is_causal=*/true);
  return out.permute({2, 0, 1, 3});
}

}  // namespace

std::vector<int64_t> document_lengths(const at::Tensor& cu_seqlens, int64_t num_tokens) {
  CHILIAD_CHECK(cu_seqlens.dim() == 1 && cu_seqlens.size(0) >= 1 && cu_seqlens.is_cpu());
  const at::Tensor ends = cu_seqlens.to(at::kLong).contiguous();
  const auto* data = ends.const_data_ptr<int64_t>();
  CHILIAD_CHECK_EQ(data[0], 0);
  CHILIAD_CHECK_EQ(data[ends.size(0) - 1], num_tokens);
  std::vector<int64_t> lengths;
  for (int64_t i = 1; i < ends.size(0); ++i) {
    CHILIAD_CHECK(data[i] >= data[i - 1]);
    lengths.push_back(data[i] - data[i - 1]);
  }
  return lengths;
}

std::vector<at::Tensor> attend_documents(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                         const at::Tensor& cu_seqlens) {
  const auto lengths = document_lengths(cu_seqlens, q.size(0));
  if (lengths.size() == 1) return {document_attention(q, k, v)};
  // Split once: the gradient of a split is one concatenation, that of slices is a sum over the whole pack.
  const auto queries = q.split_with_sizes(lengths, 0);
  const auto keys = k.split_with_sizes(lengths, 0);
  const auto values = v.split_with_sizes(lengths, 0);
  std::vector<at::Tensor> parts;
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] > 0) parts.push_back(document_attention(queries[i], keys[i], values[i]));
  }
  if (parts.empty()) parts.push_back(q.view({0, k.size(1), q.size(1) / k.size(1), q.size(2)}));
  return parts;
}

at::Tensor join_documents(const std::vector<at::Tensor>& parts) {
  if (parts.size() == 1) return parts[0].contiguous().view({parts[0].size(0), -1, parts[0].size(3)});
  const at::Tensor all = at::cat(parts, 0);  // [T, H_kv, H / H_kv, d]
  return all.view({all.size(0), -1, all.size(3)});
}

at::Tensor varlen_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const at::Tensor& cu_seqlens) {
  return join_documents(attend_documents(q, k, v, cu_seqlens));
}

}  // namespace chiliad::ops
