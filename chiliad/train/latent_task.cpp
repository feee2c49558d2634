#include <ATen/ATen.h>

#include <memory>
#include <utility>
#include <vector>

#include "chiliad/device/tensor.h"
#include "chiliad/generate/latent_conditions.h"
#include "chiliad/model/autoencoder.h"
#include "chiliad/model/diffusion.h"
#include "chiliad/objective/diffusion_objective.h"
#include "chiliad/objective/flow.h"
#include "chiliad/ops/backward.h"
#include "chiliad/ops/keyed_noise.h"
#include "chiliad/ops/patches.h"
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
  std::shared_ptr<const features::Column> latents;  // shared with the loader
  const TimeQuantiles* times;                       // of the items, where they are not drawn
};

/// The items of a micro-batch that have one shape: all of them, or a run of those of a pack.
struct Group {
  std::vector<uint64_t> keys;
  at::Tensor x0;     // as the network sees latents, [G, C, h, w] fp32
  at::Tensor noise;  // the same
  at::Tensor weights;
  objective::Times times;
};

/// Latents of one shape as a column has them.
Group make_group(const Setting& setting, const at::Tensor& values, std::vector<uint64_t> keys,
                 at::Tensor weights) {
  const at::Tensor stored = values.to(at::kFloat);
  const at::Tensor latents =
      stored.dim() == 5 ? model::sample_latents({stored.select(1, 0), stored.select(1, 1)}, keys) : stored;
  Group group;
  group.keys = std::move(keys);
  group.x0 = model::to_model_space(setting.space, latents);
  const int64_t patch = setting.network.patch;
  const int64_t tokens = group.x0.size(2) / patch * (group.x0.size(3) / patch);
  group.times = setting.times == nullptr
                    ? setting.objective.draw_times(group.keys, tokens)
                    : setting.objective.times_at(quantiles_of(*setting.times, group.keys), tokens);
  group.noise = ops::keyed_noise(group.keys, Draw::kNoise, group.x0[0].numel()).view(group.x0.sizes());
  group.weights = std::move(weights);
  return group;
}

std::vector<Group> groups_of(const Setting& setting, const loader::Batch& batch) {
  const auto keys = draw_keys(batch);
  const at::Tensor weights = weights_of(batch);
  const at::Tensor values = device::as_tensor(batch.latents);
  if (!batch.packs_pictures()) return {make_group(setting, values, keys, weights)};
  std::vector<Group> groups;
  for (size_t first = 0; first < keys.size();) {
    size_t end = first + 1;
    while (end < keys.size() && batch.shapes[end] == batch.shapes[first]) ++end;
    const auto count = static_cast<int64_t>(end - first);
    const int64_t begin = batch.cu_latents[first];
    const auto feature = setting.latents->latents_of(batch.shapes[first].width, batch.shapes[first].height);
    std::vector<int64_t> sizes{count};
    for (const int64_t size : feature.shape.sizes()) sizes.push_back(size);
    groups.push_back(
        make_group(setting, values.narrow(0, begin, batch.cu_latents[end] - begin).view(sizes),
                   {keys.begin() + static_cast<ptrdiff_t>(first), keys.begin() + static_cast<ptrdiff_t>(end)},
                   weights.narrow(0, static_cast<int64_t>(first), count)));
    first = end;
  }
  return groups;
}

class LatentSlot final : public SlotTask {
 public:
  LatentSlot(const Setting& setting, const loader::Batch& batch)
      : setting_(setting), is_pack_(batch.packs_pictures()), groups_(groups_of(setting, batch)) {
    std::vector<bool> dropped;
    for (const auto& item : batch.items)
      dropped.push_back(objective::draw_caption_dropout(setting.run.objective, item.draw_key));
    inputs_ = generate::conditions_of(setting.network, batch, setting.empty, dropped,
                                      setting.run.objective.embedded_guidance);
  }

  layers::Carry inputs() override {
    std::vector<at::Tensor> noisy;
    std::vector<at::Tensor> times;
    std::vector<at::Tensor> grids;
    for (const Group& group : groups_) {
      noisy.push_back(setting_.objective.noisy(group.x0, group.noise, group.times));
      times.push_back(setting_.objective.network_time(group.times));
      if (!is_pack_) continue;
      const at::Tensor patches = ops::patches_of(noisy.back(), patch());  // [G, n, C p p]
      noisy.back() = patches.reshape({1, -1, patches.size(2)});
      grids.push_back(at::tensor(std::vector<int64_t>{group.x0.size(2) / patch(), group.x0.size(3) / patch()})
                          .expand({group.x0.size(0), 2}));
    }
    inputs_.latents = noisy.size() == 1 ? noisy[0] : at::cat(noisy, 1);
    inputs_.time = times.size() == 1 ? times[0] : at::cat(times, 0);
    if (is_pack_) inputs_.grids = at::cat(grids, 0);
    return model::make_diffusion_input(setting_.network, inputs_);
  }

  double loss(const layers::Carry& outputs, double divisor, layers::Carry& gradients) override {
    const at::ScalarType compute = outputs.get("prediction").scalar_type();
    at::Tensor prediction = outputs.get("prediction").detach().to(at::kFloat);
    prediction.set_requires_grad(true);
    const auto predictions = of_groups(prediction);
    std::vector<at::Tensor> losses;
    for (size_t i = 0; i < groups_.size(); ++i) {
      const Group& group = groups_[i];
      losses.push_back(setting_.objective.losses(predictions[i], group.x0, group.noise, group.times) *
                       group.weights);
    }
    const at::Tensor all = losses.size() == 1 ? losses[0] : at::cat(losses, 0);  // [B]
    ops::backward({all.sum() / divisor});
    gradients.set("prediction", prediction.grad().to(compute));
    losses_ = all.detach();
    return losses_.sum(at::kDouble).item<double>();
  }

  std::vector<double> item_losses() const override { return as_doubles(losses_); }

 private:
  [[nodiscard]] int64_t patch() const { return setting_.network.patch; }

  /// The predictions on each group, [G, C, h, w].
  [[nodiscard]] std::vector<at::Tensor> of_groups(const at::Tensor& prediction) const {
    if (!is_pack_) return {prediction};
    std::vector<int64_t> lengths;
    for (const Group& group : groups_)
      lengths.push_back(group.x0.size(0) * (group.x0.size(2) / patch()) * (group.x0.size(3) / patch()));
    auto parts = prediction.split_with_sizes(lengths, 1);
    for (size_t i = 0; i < parts.size(); ++i) {
      const at::Tensor& x0 = groups_[i].x0;
      parts[i] = ops::image_of(parts[i].view({x0.size(0), -1, prediction.size(2)}), x0.size(2) / patch(),
                               x0.size(3) / patch(), patch(), ops::PatchOrder::kChannelFirst);
    }
    return parts;
  }

  const Setting& setting_;
  bool is_pack_;
  std::vector<Group> groups_;
  model::LatentBatch inputs_;
  at::Tensor losses_;  // [B]
};

class LatentTask final : public Task {
 public:
  LatentTask(const spec::RunFile& run, const loader::FeatureColumns& columns, const TimeQuantiles* times)
      : setting_{run,
                 spec::diffusion_options(run.model),
                 generate::latent_space(run.encoders, columns.latents->summary()),
                 objective::DiffusionObjective(run.objective, run.model.learned_variance),
                 generate::empty_text(columns.text.get()),
                 columns.latents,
                 times} {}

  std::unique_ptr<SlotTask> open(const loader::Batch& batch) const override {
    return std::make_unique<LatentSlot>(setting_, batch);
  }
  int64_t planned(const loader::RankStep& step) const override { return step.num_items; }
  double actual(const loader::Batch& batch) const override { return item_weights(batch); }

 private:
  Setting setting_;
};

}  // namespace

std::unique_ptr<Task> make_latent_task(const spec::RunFile& run, const loader::FeatureColumns& columns,
                                       const TimeQuantiles* times) {
  return std::make_unique<LatentTask>(run, columns, times);
}

}  // namespace chiliad::train
