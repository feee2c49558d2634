#include "chiliad/generate/latent_conditions.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "chiliad/base/error.h"
#include "chiliad/device/tensor.h"

namespace chiliad::generate {
namespace {

at::Tensor tensor_of(const features::Feature& feature) {
  at::Tensor tensor =
      at::empty(feature.shape.sizes(), at::TensorOptions().dtype(device::to_scalar_type(feature.dtype)));
  std::copy(feature.bytes.begin(), feature.bytes.end(), static_cast<std::byte*>(tensor.mutable_data_ptr()));
  return tensor.to(at::kFloat);
}

void add_guidance(const spec::DiffusionOptions& network, int64_t items, double scale,
                  model::LatentBatch& made) {
  if (network.guidance) made.guidance = at::full({items}, scale, at::kFloat);
}

/// What the sizes of the pictures, in pixels, say where the network is told.
void add_sizes(const spec::DiffusionOptions& network, const std::vector<stepplan::Bucket>& sizes,
               model::LatentBatch& made) {
  if (!network.size_conditions) return;
  const auto items = std::ssize(sizes);
  made.resolution = at::empty({items, 2}, at::kFloat);
  made.aspect_ratio = at::empty({items, 1}, at::kFloat);
  auto* sides = made.resolution.mutable_data_ptr<float>();
  auto* ratios = made.aspect_ratio.mutable_data_ptr<float>();
  for (const auto& [width, height] : sizes) {
    *sides++ = static_cast<float>(height);
    *sides++ = static_cast<float>(width);
    *ratios++ = static_cast<float>(static_cast<double>(height) / static_cast<double>(width));
  }
}

/// The captions that the items of a batch are shown, each [T, D].
std::vector<at::Tensor> shown_texts(const loader::Batch& batch, const EmptyText& empty,
                                    const std::vector<bool>& dropped) {
  const at::Tensor stored = device::as_tensor(batch.text).to(at::kFloat);
  std::vector<at::Tensor> texts;
  for (size_t i = 0; i < batch.items.size(); ++i) {
    const int64_t count = batch.token_counts[i];
    if (dropped[i]) {
      texts.push_back(empty.text);
    } else if (batch.packs_pictures()) {
      texts.push_back(stored.narrow(0, batch.cu_text[i], count));
    } else {
      texts.push_back(stored[static_cast<int64_t>(i)].narrow(0, 0, count));
    }
  }
  return texts;
}

/// Captions one after another.
void add_text_pack(const std::vector<at::Tensor>& texts, model::LatentBatch& made) {
  made.text = at::cat(texts, 0).unsqueeze(0);
  made.text_lengths = at::empty({std::ssize(texts)}, at::kLong);
  auto* lengths = made.text_lengths.mutable_data_ptr<int64_t>();
  for (const auto& text : texts) *lengths++ = text.size(0);
}

/// Captions padded to the longest.
void add_texts(const spec::DiffusionOptions& network, const std::vector<at::Tensor>& texts,
               model::LatentBatch& made) {
  const auto items = std::ssize(texts);
  int64_t longest = 1;
  for (const auto& text : texts) longest = std::max(longest, text.size(0));
  made.text = at::zeros({items, longest, network.text_channels}, at::kFloat);
  const bool masked = network.family == "pixart";
  if (masked) made.text_mask = at::zeros({items, longest}, at::kBool);
  for (int64_t i = 0; i < items; ++i) {
    const at::Tensor& text = texts[static_cast<size_t>(i)];
    CHILIAD_CHECK_EQ(text.size(1), network.text_channels);
    made.text[i].narrow(0, 0, text.size(0)).copy_(text);
    if (masked) made.text_mask[i].narrow(0, 0, text.size(0)).fill_(true);
  }
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
                                 const EmptyText& empty, const std::vector<bool>& dropped,
                                 double embedded_guidance) {
  const auto items = static_cast<int64_t>(batch.items.size());
  if (network.family == "dit") {
    model::LatentBatch made;
    made.labels = device::as_tensor(batch.tokens).to(at::kLong).flatten();
    for (int64_t i = 0; i < items; ++i) {
      if (dropped[static_cast<size_t>(i)]) made.labels[i] = network.null_class();
    }
    return made;
  }
  model::LatentBatch made;
  const auto texts = shown_texts(batch, empty, dropped);
  if (batch.packs_pictures()) {
    add_text_pack(texts, made);
  } else {
    add_texts(network, texts, made);
  }
  if (network.pooled_channels > 0) {
    made.pooled = device::as_tensor(batch.pooled).to(at::kFloat).clone();
    for (int64_t i = 0; i < items; ++i) {
      if (dropped[static_cast<size_t>(i)]) made.pooled[i].copy_(empty.pooled);
    }
  }
  std::vector<stepplan::Bucket> sizes;
  for (size_t i = 0; i < batch.items.size(); ++i) sizes.push_back(batch.shape_of(i));
  add_sizes(network, sizes, made);
  add_guidance(network, items, embedded_guidance, made);
  return made;
}

model::LatentBatch conditions_of_texts(const spec::DiffusionOptions& network,
                                       const std::vector<at::Tensor>& texts, const at::Tensor& pooled,
                                       const stepplan::Bucket& size, double embedded_guidance) {
  model::LatentBatch made;
  add_texts(network, texts, made);
  made.pooled = pooled;
  add_sizes(network, std::vector(texts.size(), size), made);
  add_guidance(network, std::ssize(texts), embedded_guidance, made);
  return made;
}

}  // namespace chiliad::generate
