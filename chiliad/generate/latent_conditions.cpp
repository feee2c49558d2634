#include "chiliad/generate/latent_conditions.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "chiliad/base/error.h"
#include "chiliad/device/tensor.h"

namespace chiliad::generate {
namespace {

constexpr double kFluxGuidance = 1.0;  // of training: no guidance

at::Tensor tensor_of(const features::Feature& feature) {
  at::Tensor tensor =
      at::empty(feature.shape.sizes(), at::TensorOptions().dtype(device::to_scalar_type(feature.dtype)));
  std::copy(feature.bytes.begin(), feature.bytes.end(), static_cast<std::byte*>(tensor.mutable_data_ptr()));
  return tensor.to(at::kFloat);
}

/// What the size of the pictures says, where the network is told.
void add_size(const spec::DiffusionOptions& network, int64_t height, int64_t width, int64_t items,
              model::LatentBatch& made) {
  if (network.guidance) made.guidance = at::full({items}, kFluxGuidance, at::kFloat);
  if (!network.size_conditions) return;
  made.resolution = at::empty({items, 2}, at::kFloat);
  made.resolution.select(1, 0).fill_(static_cast<double>(height));
  made.resolution.select(1, 1).fill_(static_cast<double>(width));
  made.aspect_ratio =
      at::full({items, 1}, static_cast<double>(height) / static_cast<double>(width), at::kFloat);
}

}  // namespace

EmptyText empty_text(const features::Column* column) {
  EmptyText empty;
  if (column == nullptr) return empty;
  for (const auto& feature : column->empty_text())
    (feature.id.second ? empty.pooled : empty.text) = tensor_of(feature);
  return empty;
}

spec::AutoencoderOptions latent_space(const spec::EncodersOptions& encoders,
                                      const features::ColumnSummary& summary) {
  spec::AutoencoderOptions space;
  const bool given = encoders.latent_scale > 0.0;
  space.scaling_factor = given ? encoders.latent_scale : summary.scaling_factor;
  space.shift_factor = given ? encoders.latent_shift : summary.shift_factor;
  return space;
}

model::LatentBatch conditions_of(const spec::DiffusionOptions& network, const loader::Batch& batch,
                                 const EmptyText& empty, const std::vector<bool>& dropped) {
  const auto items = static_cast<int64_t>(batch.items.size());
  if (network.family == "dit") {
    model::LatentBatch made;
    made.labels = device::as_tensor(batch.tokens).to(at::kLong).flatten();
    for (int64_t i = 0; i < items; ++i) {
      if (dropped[static_cast<size_t>(i)]) made.labels[i] = network.null_class();
    }
    return made;
  }
  const at::Tensor stored = device::as_tensor(batch.text).to(at::kFloat);
  std::vector<at::Tensor> texts;
  for (int64_t i = 0; i < items; ++i) {
    const auto at = static_cast<size_t>(i);
    texts.push_back(dropped[at] ? empty.text : stored[i].narrow(0, 0, batch.token_counts[at]));
  }
  at::Tensor pooled;
  if (network.pooled_channels > 0) {
    pooled = device::as_tensor(batch.pooled).to(at::kFloat).clone();
    for (int64_t i = 0; i < items; ++i) {
      if (dropped[static_cast<size_t>(i)]) pooled[i].copy_(empty.pooled);
    }
  }
  return conditions_of_texts(network, texts, pooled, batch.bucket.height, batch.bucket.width);
}

model::LatentBatch conditions_of_texts(const spec::DiffusionOptions& network,
                                       const std::vector<at::Tensor>& texts, const at::Tensor& pooled,
                                       int64_t height, int64_t width) {
  const auto items = static_cast<int64_t>(texts.size());
  int64_t longest = 1;
  for (const auto& text : texts) longest = std::max(longest, text.size(0));
  model::LatentBatch made;
  made.text = at::zeros({items, longest, network.text_channels}, at::kFloat);
  const bool masked = network.family == "pixart";
  if (masked) made.text_mask = at::zeros({items, longest}, at::kBool);
  for (int64_t i = 0; i < items; ++i) {
    const at::Tensor& text = texts[static_cast<size_t>(i)];
    CHILIAD_CHECK_EQ(text.size(1), network.text_channels);
    made.text[i].narrow(0, 0, text.size(0)).copy_(text);
    if (masked) made.text_mask[i].narrow(0, 0, text.size(0)).fill_(true);
  }
  made.pooled = pooled;
  add_size(network, height, width, items, made);
  return made;
}

}  // namespace chiliad::generate
