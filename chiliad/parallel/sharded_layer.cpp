#include "chiliad/parallel/sharded_layer.h"

#include <ATen/ATen.h>

#include "chiliad/base/error.h"
#include "chiliad/base/planted.h"
#include "chiliad/ops/adamw.h"
#include "chiliad/parallel/row_cuts.h"

namespace chiliad::parallel {

ShardedLayer::ShardedLayer(layers::Layer& layer, int rank, int num_ranks, bool average)
    : layer_(layer), rank_(rank), cuts_(cut_at_rows(layer.decl(), num_ranks)) {
  const int owner = planted_bug("swapped_ranks") && num_ranks > 1 ? (rank + 1) % num_ranks : rank;
  begin_ = cuts_[static_cast<size_t>(owner)];
  end_ = cuts_[static_cast<size_t>(owner) + 1];
  for (size_t r = 0; r + 1 < cuts_.size(); ++r) counts_.push_back(cuts_[r + 1] - cuts_[r]);
  const int64_t total = cuts_.back();
  params_ = at::zeros({total}, at::kFloat);
  grads_ = at::zeros({total}, at::kFloat);
  received_ = at::empty({num_ranks * counts_[static_cast<size_t>(rank)]}, at::kFloat);
  reduced_ = at::zeros({num_owned()}, at::kFloat);
  exp_avg_ = at::zeros({num_owned()}, at::kFloat);
  exp_avg_sq_ = at::zeros({num_owned()}, at::kFloat);
  if (average) average_ = at::zeros({num_owned()}, at::kFloat);
  int64_t offset = 0;
  for (const auto& param : layer.decl().params) {
    const int64_t count = param.shape.count();
    at::Tensor view = params_.narrow(0, offset, count).view(param.shape.sizes()).detach();
    view.set_requires_grad(true);
    grad_views_.push_back(grads_.narrow(0, offset, count).view(param.shape.sizes()));
    view.mutable_grad() = grad_views_.back();
    views_.push_back(view);
    offset += count;
  }
  layer.bind(views_);
  make_pieces();
}

void ShardedLayer::make_pieces() {
  int64_t offset = 0;
  for (const auto& param : layer_.decl().params) {
    const int64_t count = param.shape.count();
    const int64_t low = std::max(begin_, offset);
    const int64_t high = std::min(end_, offset + count);
    if (high > low) {
      const int64_t row = param.shape.rank() < 2 ? 1 : count / param.shape[0];
      CHILIAD_CHECK_EQ((low - offset) % row, 0);
      pieces_.push_back({&param, low - begin_, high - low,
                         Box::rows(param.shape, (low - offset) / row, (high - low) / row)});
    }
    offset += count;
  }
}

void ShardedLayer::start_reduce(comm::Group& group) {
  const std::vector<int64_t> mine(counts_.size(), counts_[static_cast<size_t>(rank_)]);
  reducing_ = group.all_to_all(received_, mine, grads_, counts_);
}

void ShardedLayer::finish_reduce() {
  reducing_->wait();
  reducing_.reset();
  const auto ranks = static_cast<int64_t>(counts_.size());
  const int64_t count = std::min(num_owned(), received_.numel() / ranks);
  ops::sum_parts(received_.const_data_ptr<float>(), ranks, count, owned_gradients());
}

void ShardedLayer::start_gather(comm::Group& group) {
  gathering_ = group.all_gather_parts(params_, counts_);
}

void ShardedLayer::finish_gather() {
  gathering_->wait();
  gathering_.reset();
}

void ShardedLayer::zero_gradients() {
  grads_.zero_();
}

float* ShardedLayer::owned_params() {
  return params_.mutable_data_ptr<float>() + begin_;
}
float* ShardedLayer::owned_gradients() {
  return reduced_.mutable_data_ptr<float>();
}
float* ShardedLayer::exp_avg() {
  return exp_avg_.mutable_data_ptr<float>();
}
float* ShardedLayer::exp_avg_sq() {
  return exp_avg_sq_.mutable_data_ptr<float>();
}
float* ShardedLayer::average() {
  return average_.defined() ? average_.mutable_data_ptr<float>() : nullptr;
}

at::Tensor ShardedLayer::whole(size_t param_index) const {
  return views_.at(param_index).detach();
}
at::Tensor ShardedLayer::local_gradient(size_t param_index) const {
  return grad_views_.at(param_index);
}

}  // namespace chiliad::parallel
