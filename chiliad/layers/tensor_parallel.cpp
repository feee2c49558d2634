#include "chiliad/layers/tensor_parallel.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/layers/rank_sum.h"
#include "chiliad/layers/saved_group.h"
#include "chiliad/spec/tensor_shard.h"

namespace chiliad::layers {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

/// Elements of each rank's rows of `length` rows, `row` elements each.
std::vector<int64_t> row_counts(int size, int64_t length, int64_t row) {
  std::vector<int64_t> counts;
  for (int rank = 0; rank < size; ++rank) {
    const auto [begin, end] = spec::even_part(length, rank, size);
    counts.push_back((end - begin) * row);
  }
  return counts;
}

/// [B, S, ...] with dimension 1 first, so that a rank's rows lie together.
at::Tensor rows_first(const at::Tensor& x) {
  return x.transpose(0, 1).contiguous();
}

at::Tensor gather(comm::Group& group, const at::Tensor& x, int64_t length) {
  const at::Tensor own = rows_first(x);
  auto sizes = own.sizes().vec();
  const int64_t row = x.numel() == 0 ? 1 : own.numel() / own.size(0);
  sizes[0] = length;
  at::Tensor all = at::empty(sizes, own.options());
  const int64_t row_elements = length == 0 ? 0 : all.numel() / length;
  CHILIAD_CHECK(x.numel() == 0 || row == row_elements);
  const auto [begin, end] = spec::even_part(length, group.rank(), group.size());
  CHILIAD_CHECK_EQ(end - begin, own.size(0));
  const auto counts = row_counts(group.size(), length, row_elements);
  group.all_gather_parts(all.view({-1}), counts, own.view({-1}))->wait();
  return all.transpose(0, 1).contiguous();
}

at::Tensor scatter(comm::Group& group, const at::Tensor& x) {
  const at::Tensor whole = rows_first(x);
  const int64_t length = whole.size(0);
  const int64_t row = length == 0 ? 0 : whole.numel() / length;
  const auto counts = row_counts(group.size(), length, row);
  const int64_t mine = counts[static_cast<size_t>(group.rank())];
  at::Tensor received = at::empty({mine * group.size()}, whole.options());
  const std::vector<int64_t> out_counts(counts.size(), mine);
  group.all_to_all(received, out_counts, whole.view({-1}), counts)->wait();
  auto sizes = whole.sizes().vec();
  const auto [begin, end] = spec::even_part(length, group.rank(), group.size());
  sizes[0] = end - begin;
  if (mine == 0) return at::zeros(sizes, whole.options()).transpose(0, 1).contiguous();
  return sum_of_ranks(received, group.size()).view(sizes).transpose(0, 1).contiguous();
}

at::Tensor sum_all(comm::Group& group, const at::Tensor& x) {
  const at::Tensor own = x.contiguous();
  at::Tensor all = at::empty({own.numel() * group.size()}, own.options());
  group.all_gather(all, own.view({-1}))->wait();
  if (own.numel() == 0) return own;
  return sum_of_ranks(all, group.size()).view(own.sizes());
}

struct GatherRows : public torch::autograd::Function<GatherRows> {
  static Variable forward(AutogradContext* context, const Variable& x, int64_t group, int64_t length) {
    context->saved_data["group"] = group;
    return gather(group_of(context), x, length);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {scatter(group_of(context), gradients[0]), {}, {}};
  }
};

struct ScatterRows : public torch::autograd::Function<ScatterRows> {
  static Variable forward(AutogradContext* context, const Variable& x, int64_t group) {
    context->saved_data["group"] = group;
    context->saved_data["length"] = x.size(1);
    return scatter(group_of(context), x);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {gather(group_of(context), gradients[0], context->saved_data["length"].toInt()), {}};
  }
};

struct SumPartial : public torch::autograd::Function<SumPartial> {
  static Variable forward(AutogradContext* context, const Variable& x, int64_t group) {
    context->saved_data["group"] = group;
    return sum_all(group_of(context), x);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {sum_all(group_of(context), gradients[0]), {}};
  }
};

struct SumGradient : public torch::autograd::Function<SumGradient> {
  static Variable forward(AutogradContext* context, const Variable& x, int64_t group) {
    context->saved_data["group"] = group;
    return x.view_as(x);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {sum_all(group_of(context), gradients[0]), {}};
  }
};

}  // namespace

at::Tensor own_rows(const TensorParallel& ranks, const at::Tensor& x) {
  if (ranks.size() == 1) return x;
  const auto [begin, end] = spec::even_part(x.size(1), ranks.rank(), ranks.size());
  return x.narrow(1, begin, end - begin);
}

at::Tensor gather_rows(const TensorParallel& ranks, const at::Tensor& x, int64_t length) {
  if (ranks.size() == 1) return x;
  return GatherRows::apply(x, saved_group(ranks), length);
}

at::Tensor scatter_rows(const TensorParallel& ranks, const at::Tensor& x) {
  if (ranks.size() == 1) return x;
  return ScatterRows::apply(x, saved_group(ranks));
}

at::Tensor sum_partial(const TensorParallel& ranks, const at::Tensor& x) {
  if (ranks.size() == 1) return x;
  return SumPartial::apply(x, saved_group(ranks));
}

at::Tensor sum_gradient(const TensorParallel& ranks, const at::Tensor& x) {
  if (ranks.size() == 1) return x;
  return SumGradient::apply(x, saved_group(ranks));
}

at::Tensor largest_of_ranks(const TensorParallel& ranks, const at::Tensor& x) {
  if (ranks.size() == 1) return x.detach();
  const at::Tensor own = x.detach().contiguous();
  at::Tensor all = at::empty({own.numel() * ranks.size()}, own.options());
  ranks.group->all_gather(all, own.view({-1}))->wait();
  return all.view({ranks.size(), own.numel()}).amax(0).view(own.sizes());
}

}  // namespace chiliad::layers
