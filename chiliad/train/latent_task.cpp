#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <vector>

#include "chiliad/device/tensor.h"
#include "chiliad/generate/latent_conditions.h"
#include "chiliad/model/autoencoder.h"
#include "chiliad/model/diffusion.h"
#include "chiliad/objective/diffusion_objective.h"
#include "chiliad/objective/flow.h"
#include "chiliad/ops/keyed_noise.h"
#include "chiliad/train/task.h"

namespace chiliad::train {
namespace {

/// What the slots of a run share.
struct Setting {
  const spec::RunFile& run;
  spec::DiffusionOptions network;
  spec::AutoencoderOptions space;  // scale and shift of latents
  objective::DiffusionObjective objective;
  generate::EmptyText empty;
};

/// The latents of a batch as the network sees them, [B, C, h, w] fp32.
at::Tensor clean_latents(const Setting& setting, const loader::Batch& batch) {
  const at::Tensor stored = device::as_tensor(batch.latents).to(at::kFloat);
  const at::Tensor latents =
      stored.dim() == 5 ? model::sample_latents({stored.select(1, 0), stored.select(1, 1)}, draw_keys(batch))
                        : stored;
  return model::to_model_space(setting.space, latents);
}

class LatentSlot final : public SlotTask {
 public:
  LatentSlot(const Setting& setting, const loader::Batch& batch) : setting_(setting) {
    const auto keys = draw_keys(batch);
    std::vector<bool> dropped;
    for (const uint64_t key : keys)
      dropped.push_back(objective::draw_caption_dropout(setting.run.objective, key));
    x0_ = clean_latents(setting, batch);
    const int64_t patch = setting.network.patch;
    const int64_t tokens = x0_.size(2) / patch * (x0_.size(3) / patch);
    times_ = setting.objective.draw_times(keys, tokens);
    noise_ = ops::keyed_noise(keys, Draw::kNoise, x0_[0].numel()).view(x0_.sizes());
    weights_ = weights_of(batch);
    inputs_ = generate::conditions_of(setting.network, batch, setting.empty, dropped);
  }

  layers::Carry inputs() override {
    inputs_.latents = setting_.objective.noisy(x0_, noise_, times_);
    inputs_.time = setting_.objective.network_time(times_);
    return model::make_diffusion_input(setting_.network, inputs_);
  }

  double loss(const layers::Carry& outputs, double divisor, layers::Carry& gradients) override {
    const at::ScalarType compute = outputs.get("prediction").scalar_type();
    at::Tensor prediction = outputs.get("prediction").detach().to(at::kFloat);
    prediction.set_requires_grad(true);
    const at::Tensor losses = setting_.objective.losses(prediction, x0_, noise_, times_) * weights_;  // [B]
    torch::autograd::backward({losses.sum() / divisor}, {});
    gradients.set("prediction", prediction.grad().to(compute));
    return losses.detach().sum(at::kDouble).item<double>();
  }

 private:
  const Setting& setting_;
  model::LatentBatch inputs_;
  at::Tensor x0_;
  at::Tensor noise_;
  objective::Times times_;
  at::Tensor weights_;
};

class LatentTask final : public Task {
 public:
  LatentTask(const spec::RunFile& run, const loader::FeatureColumns& columns)
      : setting_{run, spec::diffusion_options(run.model),
                 generate::latent_space(run.encoders, columns.latents->summary()),
                 objective::DiffusionObjective(run.objective, run.model.learned_variance),
                 generate::empty_text(columns.text.get())} {}

  std::unique_ptr<SlotTask> open(const loader::Batch& batch) const override {
    return std::make_unique<LatentSlot>(setting_, batch);
  }
  int64_t planned(const loader::RankStep& step) const override { return step.num_items; }
  double actual(const loader::Batch& batch) const override { return item_weights(batch); }

 private:
  Setting setting_;
};

}  // namespace

std::unique_ptr<Task> make_latent_task(const spec::RunFile& run, const loader::FeatureColumns& columns) {
  return std::make_unique<LatentTask>(run, columns);
}

}  // namespace chiliad::train
