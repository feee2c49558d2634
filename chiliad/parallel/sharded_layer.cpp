#include "chiliad/parallel/sharded_layer.h"

#include <ATen/ATen.h>

#include <array>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/planted.h"
#include "chiliad/comm/part_sum.h"
#include "chiliad/parallel/shared_values.h"

namespace chiliad::parallel {

// Memory that peers read in place belongs to the group that reads it. What is gathered from shards belongs to
// their group, what replicas exchange to theirs; an fp32 shard is both, and the shard group reads it.
ShardedLayer::ShardedLayer(layers::Layer& layer, const spec::LayerDecl& whole, Mesh& mesh, LayerPools& pools,
                           const ShardOptions& options)
    : layer_(layer),
      whole_decl_(whole),
      mesh_(mesh),
      pools_(pools),
      options_(options),
      layout_(whole, mesh.shape(), mesh.place()),
      sharded_(mesh.shape().dp_shard > 1),
      params_(layout_.num_params(), options.compute),
      grads_(options.trained ? layout_.num_params() : 0, options.compute) {
  const bool narrow = options_.compute != at::kFloat;
  shard_ = shared_values(sharded_ && !narrow ? mesh.shard_gather() : mesh.replicas(), layout_.shard_size());
  if (narrow) narrow_ = shared_values(mesh.shard_gather(), layout_.shard_size(), options_.compute);
  if (!sharded_) params_.attach(compute_shard());
  if (options_.trained) allocate_gradients();
  bind();
}

void ShardedLayer::allocate_gradients() {
  shard_grads_ = shared_values(mesh_.replicas(), layout_.shard_size());
  if (gradients_stay()) {
    const at::Tensor stays =
        sharded_ ? shared_values(mesh_.shard_reduce(), layout_.num_params()) : shard_grads_;
    if (narrow_.defined()) {
      sums_ = stays;
    } else {
      grads_.attach(stays);
    }
  }
  const bool owns_shard = mesh_.shape().dp_replicate == 1;
  reduced_ = owns_shard ? shard_grads_ : at::zeros({layout_.owned_size()}, at::kFloat);
  exp_avg_ = at::zeros({layout_.owned_size()}, at::kFloat);
  exp_avg_sq_ = at::zeros({layout_.owned_size()}, at::kFloat);
  if (options_.average) average_ = at::zeros({layout_.owned_size()}, at::kFloat);
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
  params_.attach(pools_.params);
  if (planted_bug("stale_gather") && !first_gathered_.defined()) first_gathered_ = compute_shard().clone();
  const at::Tensor& from = first_gathered_.defined() ? first_gathered_ : compute_shard();
  unsharding_ = mesh_.shard_gather().all_gather_parts(params_.base(), layout_.shard_sizes(), from);
}

void ShardedLayer::finish_unshard() {
  if (unsharding_ == nullptr) return;
  unsharding_->wait();
  unsharding_.reset();
}

void ShardedLayer::reshard() {
  if (sharded_) params_.release(pools_.params);
}

void ShardedLayer::publish() {
  if (!narrow_.defined()) return;
  mesh_.shard_gather().await_read(narrow_);
  narrow_.copy_(shard_);
}

void ShardedLayer::open_gradients() {
  if (!options_.trained || grads_open_) return;
  grads_open_ = true;
  if (!gradients_stay() || narrow_.defined()) {
    grads_.attach(pools_.gradients);
  } else {
    (sharded_ ? mesh_.shard_reduce() : mesh_.replicas()).await_read(grads_.base());
  }
  grads_.base().zero_();
}

void ShardedLayer::close_gradients() {
  if (!sums_.defined() || !grads_open_) return;
  if (!has_sums_) (sharded_ ? mesh_.shard_reduce() : mesh_.replicas()).await_read(sums_);
  const std::array<const void*, 1> slot = {grads_.base().const_data_ptr()};
  comm::sum_parts(slot, comm::part_type(grads_.base()), sums_.numel(), sums_.mutable_data_ptr<float>(),
                  std::exchange(has_sums_, true));
  grads_.release(pools_.gradients);
  grads_open_ = false;
}

void ShardedLayer::start_reduce() {
  if (!sharded_) return;
  mesh_.replicas().await_read(shard_grads_);
  reducing_ = mesh_.shard_reduce().reduce_scatter(shard_grads_, sums_.defined() ? sums_ : grads_.base(),
                                                  layout_.shard_sizes(), has_shard_grads_);
  if (planted_bug("early_reuse")) grads_.release(pools_.gradients);  // the next layer takes it meanwhile
}

void ShardedLayer::finish_reduce() {
  if (reducing_ == nullptr) return;
  reducing_->wait();
  reducing_.reset();
  if (!gradients_stay() && grads_.has_memory()) grads_.release(pools_.gradients);
  grads_open_ = false;
  has_shard_grads_ = true;
}

void ShardedLayer::start_reduce_replicas() {
  if (!sharded_ && !has_sums_) {  // a step without a micro-batch: zeros
    open_gradients();
    close_gradients();
  }
  if (mesh_.shape().dp_replicate == 1) return;
  reducing_ = mesh_.replicas().reduce_scatter(reduced_, shard_grads_, layout_.owned_sizes(), false);
}

void ShardedLayer::finish_reduce_replicas() {
  if (reducing_ == nullptr) return;
  reducing_->wait();
  reducing_.reset();
}

void ShardedLayer::begin_update() {
  mesh_.shard_gather().await_read(shard_);
  mesh_.replicas().await_read(shard_);
  has_shard_grads_ = false;
  has_sums_ = false;
  grads_open_ = false;
}

void ShardedLayer::start_gather() {
  if (mesh_.shape().dp_replicate == 1) return;
  gathering_ = mesh_.replicas().all_gather_parts(
      shard_, layout_.owned_sizes(), shard_.narrow(0, layout_.owned_begin(), layout_.owned_size()));
}

void ShardedLayer::finish_gather() {
  if (gathering_ != nullptr) gathering_->wait();
  gathering_.reset();
  publish();
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
  for (const auto* tensor : {&shard_, &narrow_, &shard_grads_, &exp_avg_, &exp_avg_sq_, &average_}) {
    if (tensor->defined()) sum += static_cast<int64_t>(tensor->nbytes());
  }
  const bool own_sum = reduced_.defined() && !reduced_.is_same(shard_grads_);
  if (own_sum) sum += static_cast<int64_t>(reduced_.nbytes());
  if (options_.trained && sharded_ && options_.keep)
    sum += static_cast<int64_t>(sizeof(float)) * layout_.num_params();
  return sum;
}

}  // namespace chiliad::parallel
