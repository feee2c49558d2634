#include "chiliad/ops/joint_attention.h"

#include <ATen/ATen.h>

#include "chiliad/base/error.h"
#include "chiliad/ops/attention.h"
#include "chiliad/ops/rms_norm.h"

namespace chiliad::ops {

std::pair<at::Tensor, at::Tensor> joint_attention(const Stream& first, const Stream& second, int64_t heads) {
  const int64_t count = first.q.size(1);
  const at::Tensor mixed = attention(at::cat({first.q, second.q}, 1), at::cat({first.k, second.k}, 1),
                                     at::cat({first.v, second.v}, 1), heads, {});
  return {mixed.narrow(1, 0, count), mixed.narrow(1, count, second.q.size(1))};
}

std::pair<at::Tensor, at::Tensor> packed_joint_attention(const Stream& first, const Stream& second,
                                                         int64_t heads,
                                                         const std::vector<int64_t>& first_lengths,
                                                         const std::vector<int64_t>& second_lengths) {
  CHILIAD_CHECK_EQ(first_lengths.size(), second_lengths.size());
  std::vector<int64_t> lengths;
  std::vector<int64_t> cuts;  // of first and second in turns
  for (size_t i = 0; i < first_lengths.size(); ++i) {
    lengths.push_back(first_lengths[i] + second_lengths[i]);
    cuts.insert(cuts.end(), {first_lengths[i], second_lengths[i]});
  }
  const auto joined = [&](const at::Tensor& a, const at::Tensor& b) {
    const auto of_first = a[0].split_with_sizes(first_lengths, 0);
    const auto of_second = b[0].split_with_sizes(second_lengths, 0);
    std::vector<at::Tensor> parts;
    for (size_t i = 0; i < of_first.size(); ++i) parts.insert(parts.end(), {of_first[i], of_second[i]});
    return at::cat(parts, 0);
  };
  const at::Tensor mixed = packed_attention(joined(first.q, second.q), joined(first.k, second.k),
                                            joined(first.v, second.v), heads, lengths, lengths);
  const auto parts = mixed.split_with_sizes(cuts, 0);
  std::vector<at::Tensor> to_first;
  std::vector<at::Tensor> to_second;
  for (size_t i = 0; i < parts.size(); i += 2) {
    to_first.push_back(parts[i]);
    to_second.push_back(parts[i + 1]);
  }
  return {at::cat(to_first, 0).unsqueeze(0), at::cat(to_second, 0).unsqueeze(0)};
}

at::Tensor norm_heads(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return rms_norm(x.view({x.size(0), x.size(1), -1, weight.size(0)}), weight, eps).view(x.sizes());
}

}  // namespace chiliad::ops
