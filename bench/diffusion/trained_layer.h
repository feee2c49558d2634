#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "chiliad/layers/layer.h"
#include "chiliad/model/build_model.h"
#include "chiliad/observe/cpu_time.h"
#include "chiliad/ops/adamw.h"

namespace chiliad::bench {

struct Instant {
  double wall = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  double cpu = observe::process_cpu_seconds();
};

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// One layer with its parameters as the trainer keeps them: fp32 values, gradients and moments; where the
/// type is bf16, a bf16 copy to compute with and bf16 gradients.
class TrainedLayer {
 public:
  TrainedLayer(std::unique_ptr<layers::Layer> layer, at::ScalarType type)
      : layer_(std::move(layer)), narrow_(type != at::kFloat) {
    int64_t count = 0;
    for (const auto& param : layer_->decl().params) count += numel(param);
    values_ = at::empty({count}, at::kFloat);
    gradients_ = at::zeros({count}, at::kFloat);
    exp_avg_ = at::zeros({count}, at::kFloat);
    exp_avg_sq_ = at::zeros({count}, at::kFloat);
    at::Tensor at_work = narrow_ ? at::empty({count}, type) : values_;
    at_work_ = at_work;
    work_gradients_ = narrow_ ? at::zeros({count}, type) : gradients_;
    std::vector<at::Tensor> views;
    int64_t offset = 0;
    for (const auto& param : layer_->decl().params) {
      draw(param, values_.narrow(0, offset, numel(param)).view(param.shape.sizes()));
      at::Tensor view = at_work_.narrow(0, offset, numel(param)).view(param.shape.sizes());
      view.set_requires_grad(true);
      view.mutable_grad() = work_gradients_.narrow(0, offset, numel(param)).view(param.shape.sizes());
      views.push_back(view);
      offset += numel(param);
    }
    layer_->bind(views);
    publish();
  }

  [[nodiscard]] const layers::Layer& layer() const { return *layer_; }
  void open() { work_gradients_.zero_(); }
  double close() {
    if (narrow_) gradients_.copy_(work_gradients_);
    return ops::sum_of_squares(gradients_.const_data_ptr<float>(), gradients_.numel());
  }
  void update(const ops::AdamWStep& step) {
    ops::adamw(step, values_.numel(), values_.mutable_data_ptr<float>(), gradients_.const_data_ptr<float>(),
               exp_avg_.mutable_data_ptr<float>(), exp_avg_sq_.mutable_data_ptr<float>(), nullptr);
    publish();
  }

 private:
  static int64_t numel(const spec::ParamDecl& param) {
    int64_t count = 1;
    for (const int64_t size : param.shape.sizes()) count *= size;
    return count;
  }
  /// Nothing is zero, so that no gradient is.
  static void draw(const spec::ParamDecl& param, const at::Tensor& to) {
    model::initialise(param, 1, to);
    if (to.abs().sum().item<double>() == 0.0) to.normal_(0.0, 0.02);
  }
  void publish() {
    if (narrow_) at_work_.copy_(values_);
  }

  std::unique_ptr<layers::Layer> layer_;
  bool narrow_;
  at::Tensor values_;
  at::Tensor gradients_;
  at::Tensor exp_avg_;
  at::Tensor exp_avg_sq_;
  at::Tensor at_work_;
  at::Tensor work_gradients_;
};

}  // namespace chiliad::bench
