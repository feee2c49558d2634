#include "chiliad/parallel/sharded_layer.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "chiliad/base/error.h"
#include "chiliad/base/planted.h"
#include "chiliad/ops/adamw.h"

namespace chiliad::parallel {
namespace {

at::Tensor zeros(int64_t count) {
  return at::zeros({count}, at::kFloat);
}

}  // namespace

ShardedLayer::ShardedLayer(layers::Layer& layer, const spec::LayerDecl& whole, Mesh& mesh, BufferPool& pool,
                           const ShardOptions& options)
    : layer_(layer),
      whole_decl_(whole),
      mesh_(mesh),
      pool_(pool),
      options_(options),
      layout_(whole, mesh.shape(), mesh.place()),
      sharded_(mesh.shape().dp_shard > 1),
      shard_(zeros(layout_.shard_size())),
      params_(layout_.num_params()),
      grads_(options.trained ? layout_.num_params() : 0) {
  if (!sharded_) params_.attach(shard_);
  if (options_.trained) {
    shard_grads_ = zeros(layout_.shard_size());
    if (!sharded_) grads_.attach(shard_grads_);
    const bool owns_shard = mesh.shape().dp_replicate == 1;
    reduced_ = owns_shard ? shard_grads_ : zeros(layout_.owned_size());
    exp_avg_ = zeros(layout_.owned_size());
    exp_avg_sq_ = zeros(layout_.owned_size());
    if (options_.average) average_ = zeros(layout_.owned_size());
  }
  bind();
}

void ShardedLayer::bind() {
  int64_t offset = 0;
  for (const auto& param : layer_.decl().params) {
    const int64_t count = param.shape.count();
    at::Tensor view = params_.base().narrow(0, offset, count).view(param.shape.sizes()).detach();
    if (options_.trained) {
      view.set_requires_grad(true);
      view.mutable_grad() = grads_.base().narrow(0, offset, count).view(param.shape.sizes());
    }
    views_.push_back(view);
    offset += count;
  }
  CHILIAD_CHECK_EQ(offset, layout_.num_params());
  layer_.bind(views_);
}

void ShardedLayer::start_unshard() {
  if (!sharded_ || has_whole()) return;
  params_.attach(pool_);
  if (planted_bug("stale_gather") && !first_gathered_.defined()) first_gathered_ = shard_.clone();
  const at::Tensor& from = first_gathered_.defined() ? first_gathered_ : shard_;
  // Not as an operation on tensors: autograd would take it for a change of what it keeps for backward.
  std::copy_n(from.const_data_ptr<float>(), layout_.shard_size(),
              params_.base().mutable_data_ptr<float>() + layout_.shard_begin());
  unsharding_ = mesh_.shard_gather().all_gather_parts(params_.base(), layout_.shard_sizes());
}

void ShardedLayer::finish_unshard() {
  if (unsharding_ == nullptr) return;
  unsharding_->wait();
  unsharding_.reset();
}

void ShardedLayer::reshard() {
  if (sharded_) params_.release(pool_);
}

void ShardedLayer::open_gradients() {
  if (!options_.trained || grads_open_) return;
  grads_open_ = true;
  if (sharded_) grads_.attach(pool_);
  grads_.base().zero_();
}

void ShardedLayer::start_reduce() {
  if (!sharded_) return;
  const int64_t mine = layout_.shard_size();
  const int64_t ranks = mesh_.shape().dp_shard;
  received_ = pool_.take(mine * ranks);
  const std::vector<int64_t> out_counts(static_cast<size_t>(ranks), mine);
  // A slot without work has no gradients; it takes part with zeros.
  open_gradients();
  reducing_ = mesh_.shard_reduce().all_to_all(received_.narrow(0, 0, mine * ranks), out_counts, grads_.base(),
                                              layout_.shard_sizes());
  if (planted_bug("early_reuse")) pool_.give(received_);  // the next layer takes it while parts arrive
}

void ShardedLayer::finish_reduce() {
  if (reducing_ == nullptr) return;
  reducing_->wait();
  reducing_.reset();
  grads_.release(pool_);
  grads_open_ = false;
  const int64_t mine = layout_.shard_size();
  const int64_t ranks = mesh_.shape().dp_shard;
  if (has_shard_grads_) {
    for (int64_t part = 0; part < ranks; ++part) shard_grads_.add_(received_.narrow(0, part * mine, mine));
  } else {
    ops::sum_parts(received_.const_data_ptr<float>(), ranks, mine, shard_grads_.mutable_data_ptr<float>());
  }
  has_shard_grads_ = true;
  if (!planted_bug("early_reuse")) pool_.give(std::move(received_));
  received_.reset();
}

void ShardedLayer::start_reduce_replicas() {
  if (!sharded_) open_gradients();
  if (mesh_.shape().dp_replicate == 1) return;
  const int64_t mine = layout_.owned_sizes()[static_cast<size_t>(mesh_.place().replica)];
  const int64_t ranks = mesh_.shape().dp_replicate;
  received_ = pool_.take(mine * ranks);
  const std::vector<int64_t> out_counts(static_cast<size_t>(ranks), mine);
  reducing_ = mesh_.replicas().all_to_all(received_.narrow(0, 0, mine * ranks), out_counts, shard_grads_,
                                          layout_.owned_sizes());
}

void ShardedLayer::finish_reduce_replicas() {
  if (reducing_ == nullptr) return;
  reducing_->wait();
  reducing_.reset();
  const int64_t mine = layout_.owned_sizes()[static_cast<size_t>(mesh_.place().replica)];
  ops::sum_parts(received_.const_data_ptr<float>(), mesh_.shape().dp_replicate,
                 std::min(mine, layout_.owned_size()), owned_gradients());
  pool_.give(std::move(received_));
  received_.reset();
}

void ShardedLayer::start_gather() {
  if (mesh_.shape().dp_replicate == 1) return;
  gathering_ = mesh_.replicas().all_gather_parts(shard_, layout_.owned_sizes());
}

void ShardedLayer::finish_gather() {
  if (gathering_ == nullptr) return;
  gathering_->wait();
  gathering_.reset();
}

void ShardedLayer::clear_gradients() {
  has_shard_grads_ = false;
  grads_open_ = false;
}

float* ShardedLayer::shard_params() {
  return shard_.mutable_data_ptr<float>();
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

int64_t ShardedLayer::num_bytes() const {
  int64_t sum = 0;
  for (const auto* tensor : {&shard_, &shard_grads_, &exp_avg_, &exp_avg_sq_, &average_}) {
    if (tensor->defined()) sum += static_cast<int64_t>(tensor->nbytes());
  }
  const bool own_sum = reduced_.defined() && !reduced_.is_same(shard_grads_);
  return own_sum ? sum + static_cast<int64_t>(reduced_.nbytes()) : sum;
}

at::Tensor ShardedLayer::whole(size_t param_index) const {
  return views_.at(param_index).detach();
}

}  // namespace chiliad::parallel
