#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "chiliad/device/tensor.h"
#include "chiliad/model/build_model.h"
#include "chiliad/objective/diffusion_objective.h"
#include "chiliad/objective/flow.h"
#include "chiliad/ops/backward.h"
#include "chiliad/text/byte_tokenizer.h"
#include "chiliad/train/task.h"

namespace chiliad::train {
namespace {

/// Tokens as int64 [B, T]; the rows of dropped captions are the null caption alone.
at::Tensor training_tokens(const loader::Batch& batch, const spec::ObjectiveOptions& options) {
  at::Tensor tokens = device::as_tensor(batch.tokens).to(at::kLong);
  auto* data = tokens.mutable_data_ptr<int64_t>();
  const int64_t length = tokens.size(1);
  for (size_t i = 0; i < batch.items.size(); ++i, data += length) {
    if (!objective::draw_caption_dropout(options, batch.items[i].draw_key)) continue;
    std::fill(data, data + length, int64_t{text::ByteTokenizer::kPad});
    data[0] = text::ByteTokenizer::kNull;
  }
  return tokens;
}

class FlowSlot final : public SlotTask {
 public:
  FlowSlot(const spec::RunFile& run, layers::TensorParallel ranks, const TimeQuantiles* times,
           const loader::Batch& batch)
      : run_(run), ranks_(ranks) {
    const int64_t patch = run.model.patch;
    rows_ = batch.bucket.height / patch;
    columns_ = batch.bucket.width / patch;
    const auto keys = draw_keys(batch);
    const objective::DiffusionObjective objective(run.objective, false);
    time_ =
        (times == nullptr ? objective.draw_times(keys, 0) : objective.times_at(quantiles_of(*times, keys), 0))
            .flow;
    x0_ = objective::patchify(device::as_tensor(batch.pixels), patch);
    noise_ = objective::draw_noise(keys, x0_.size(1) * x0_.size(2)).view(x0_.sizes());
    weights_ = weights_of(batch);
    tokens_ = training_tokens(batch, run.objective);
  }

  layers::Carry inputs() override {
    const at::Tensor x_t = objective::interpolate(x0_, noise_, time_);
    return model::make_input(run_.model, x_t, time_, std::move(tokens_), rows_, columns_);
  }

  double loss(const layers::Carry& outputs, double divisor, layers::Carry& gradients) override {
    const at::ScalarType compute = outputs.get("prediction").scalar_type();
    at::Tensor prediction = outputs.get("prediction").detach().to(at::kFloat);
    // Tensor-parallel ranks have rows of every item: each counts its part of the item's mean.
    const double share = static_cast<double>(prediction.size(1)) / static_cast<double>(x0_.size(1));
    if (prediction.size(1) == 0) {
      gradients.set("prediction", at::zeros_like(prediction, compute));
      item_losses_.assign(static_cast<size_t>(prediction.size(0)), 0.0);
      return 0.0;
    }
    prediction.set_requires_grad(true);
    const at::Tensor means = objective::item_losses(run_.objective, prediction, layers::own_rows(ranks_, x0_),
                                                    layers::own_rows(ranks_, noise_), time_);  // [B]
    const at::Tensor losses = means * (ranks_.size() == 1 ? weights_ : weights_ * share);
    const at::Tensor total = losses.sum() / divisor;
    ops::backward({total});
    gradients.set("prediction", prediction.grad().to(compute));
    item_losses_ = as_doubles(losses.detach());
    return std::accumulate(item_losses_.begin(), item_losses_.end(), 0.0);
  }

  std::vector<double> item_losses() const override { return item_losses_; }

 private:
  const spec::RunFile& run_;
  layers::TensorParallel ranks_;
  int64_t rows_ = 0;
  int64_t columns_ = 0;
  at::Tensor x0_;
  at::Tensor noise_;
  at::Tensor time_;
  at::Tensor weights_;
  at::Tensor tokens_;
  std::vector<double> item_losses_;
};

class FlowTask final : public Task {
 public:
  FlowTask(const spec::RunFile& run, layers::TensorParallel ranks, const TimeQuantiles* times)
      : run_(run), ranks_(ranks), times_(times) {}

  std::unique_ptr<SlotTask> open(const loader::Batch& batch) const override {
    return std::make_unique<FlowSlot>(run_, ranks_, times_, batch);
  }
  int64_t planned(const loader::RankStep& step) const override { return step.num_items; }
  double actual(const loader::Batch& batch) const override { return item_weights(batch); }

 private:
  const spec::RunFile& run_;
  layers::TensorParallel ranks_;
  const TimeQuantiles* times_;
};

}  // namespace

std::unique_ptr<Task> make_flow_task(const spec::RunFile& run, layers::TensorParallel ranks,
                                     const TimeQuantiles* times) {
  return std::make_unique<FlowTask>(run, ranks, times);
}

}  // namespace chiliad::train
