#include "bench/diffusion/trained_layer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "chiliad/model/build_model.h"

namespace chiliad::bench {
namespace {

/// Nothing is zero, so that no gradient is.
void draw(const spec::ParamDecl& param, const at::Tensor& to) {
  model::initialise(param, 1, to);
  if (to.abs().sum().item<double>() == 0.0) to.normal_(0.0, 0.02);
}

}  // namespace

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

TrainedLayer::TrainedLayer(std::unique_ptr<layers::Layer> layer, at::ScalarType type)
    : layer_(std::move(layer)), narrow_(type != at::kFloat) {
  int64_t count = 0;
  for (const auto& param : layer_->decl().params) count += param.shape.count();
  values_ = at::empty({count}, at::kFloat);
  gradients_ = at::zeros({count}, at::kFloat);
  exp_avg_ = at::zeros({count}, at::kFloat);
  exp_avg_sq_ = at::zeros({count}, at::kFloat);
  at_work_ = narrow_ ? at::empty({count}, type) : values_;
  work_gradients_ = narrow_ ? at::zeros({count}, type) : gradients_;
  std::vector<at::Tensor> views;
  int64_t offset = 0;
  for (const auto& param : layer_->decl().params) {
    const int64_t size = param.shape.count();
    draw(param, values_.narrow(0, offset, size).view(param.shape.sizes()));
    at::Tensor view = at_work_.narrow(0, offset, size).view(param.shape.sizes());
    view.set_requires_grad(true);
    view.mutable_grad() = work_gradients_.narrow(0, offset, size).view(param.shape.sizes());
    views.push_back(view);
    offset += size;
  }
  layer_->bind(views);
  publish();
}

void TrainedLayer::open() {
  work_gradients_.zero_();
}

double TrainedLayer::close() {
  if (narrow_) gradients_.copy_(work_gradients_);
  return ops::sum_of_squares(gradients_.const_data_ptr<float>(), gradients_.numel());
}

void TrainedLayer::update(const ops::AdamWStep& step) {
  ops::adamw(step, values_.numel(), values_.mutable_data_ptr<float>(), gradients_.const_data_ptr<float>(),
             exp_avg_.mutable_data_ptr<float>(), exp_avg_sq_.mutable_data_ptr<float>(), nullptr);
  publish();
}

void TrainedLayer::publish() {
  if (narrow_) at_work_.copy_(values_);
}

}  // namespace chiliad::bench
