#include <ATen/ATen.h>

#include <vector>

#include "chiliad/device/tensor.h"
#include "chiliad/objective/autoencoder.h"
#include "chiliad/ops/backward.h"
#include "chiliad/train/task.h"

namespace chiliad::train {
namespace {

class AutoencoderSlot final : public SlotTask {
 public:
  AutoencoderSlot(const spec::RunFile& run, const objective::FeatureNetwork* features,
                  const loader::Batch& batch)
      : pixels_(objective::to_pixels(device::as_tensor(batch.pixels))) {
    options_.error = run.objective.error == "squared" ? objective::ReconstructionError::kSquared
                                                      : objective::ReconstructionError::kAbsolute;
    options_.kl_weight = run.objective.kl_weight;
    options_.features = features;
    options_.feature_weight = run.objective.perceptual_weight;
    const int64_t factor = spec::token_pixels(run.model);
    weights_ = weights_of(batch);
    noise_ = objective::draw_latent_noise(draw_keys(batch), run.model.latent_channels,
                                          batch.bucket.height / factor, batch.bucket.width / factor);
  }

  layers::Carry inputs() override {
    layers::Carry carry;
    carry.set("pixels", pixels_);
    carry.set("noise", noise_);
    return carry;
  }

  double loss(const layers::Carry& outputs, double divisor, layers::Carry& gradients) override {
    const auto leaf = [&](const char* name) {
      return outputs.get(name).detach().to(at::kFloat).set_requires_grad(true);
    };
    const objective::AutoencoderOutput output{leaf("reconstruction"), leaf("mean"), leaf("logvar")};
    const at::Tensor losses = objective::autoencoder_losses(options_, output, pixels_).total * weights_;
    ops::backward({losses.sum() / divisor});
    gradients.set("reconstruction", output.reconstruction.grad());
    gradients.set("mean", output.mean.grad());
    gradients.set("logvar", output.logvar.grad());
    return losses.detach().sum(at::kDouble).item<double>();
  }

 private:
  objective::AutoencoderLossOptions options_;
  at::Tensor pixels_;
  at::Tensor noise_;
  at::Tensor weights_;
};

class AutoencoderTask final : public Task {
 public:
  explicit AutoencoderTask(const spec::RunFile& run) : run_(run) {
    if (!run.objective.perceptual.empty())
      features_ = std::make_unique<objective::FeatureNetwork>(run.objective.perceptual);
  }

  std::unique_ptr<SlotTask> open(const loader::Batch& batch) const override {
    return std::make_unique<AutoencoderSlot>(run_, features_.get(), batch);
  }
  int64_t planned(const loader::RankStep& step) const override { return step.num_items; }
  double actual(const loader::Batch& batch) const override { return item_weights(batch); }

 private:
  const spec::RunFile& run_;
  std::unique_ptr<objective::FeatureNetwork> features_;
};

}  // namespace

std::unique_ptr<Task> make_autoencoder_task(const spec::RunFile& run) {
  return std::make_unique<AutoencoderTask>(run);
}

}  // namespace chiliad::train
