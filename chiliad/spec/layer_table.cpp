#include "chiliad/spec/layer_table.h"

#include <fmt/core.h>

#include "chiliad/base/error.h"
#include "chiliad/spec/extension.h"
#include "chiliad/spec/families/families.h"

namespace chiliad::spec {

Work& Work::operator+=(const Work& other) {
  linear_flops += other.linear_flops;
  attention_flops += other.attention_flops;
  elementwise += other.elementwise;
  launches += other.launches;
  return *this;
}

Work Work::scaled(double factor) const {
  return {linear_flops * factor, attention_flops * factor, elementwise * factor, launches * factor};
}

Work LayerDecl::forward(const BatchShape& shape) const {
  switch (kind) {
    case LayerKind::kTextEmbedding:
    case LayerKind::kTextBlock:
    case LayerKind::kImageEmbedding:
    case LayerKind::kDiffusionBlock:
    case LayerKind::kImageHead:
      return families::pixel_dit_work(*this, shape);
    case LayerKind::kTokenEmbedding:
    case LayerKind::kDecoderBlock:
    case LayerKind::kLanguageHead:
      return families::language_work(*this, shape);
    case LayerKind::kBertEmbedding:
    case LayerKind::kBertBlock:
    case LayerKind::kBertPooler:
    case LayerKind::kClipTextEmbedding:
    case LayerKind::kClipTextBlock:
    case LayerKind::kClipTextHead:
    case LayerKind::kT5Embedding:
    case LayerKind::kT5Block:
    case LayerKind::kT5Norm:
      return families::text_encoder_work(*this, shape);
    case LayerKind::kAutoencoderStem:
    case LayerKind::kAutoencoderDownStage:
    case LayerKind::kAutoencoderLatentHead:
    case LayerKind::kAutoencoderLatentStem:
    case LayerKind::kAutoencoderMiddle:
    case LayerKind::kAutoencoderUpStage:
    case LayerKind::kAutoencoderPixelHead:
      return families::autoencoder_work(*this, shape);
    case LayerKind::kDitEmbedding:
    case LayerKind::kDitBlock:
    case LayerKind::kDitHead:
    case LayerKind::kPixartEmbedding:
    case LayerKind::kPixartBlock:
    case LayerKind::kPixartHead:
    case LayerKind::kSd3Positions:
    case LayerKind::kSd3Embedding:
    case LayerKind::kSd3Block:
    case LayerKind::kSd3DualBlock:
    case LayerKind::kSd3Head:
    case LayerKind::kFluxEmbedding:
    case LayerKind::kFluxDoubleBlock:
    case LayerKind::kFluxSingleBlock:
    case LayerKind::kFluxHead:
      return families::diffusion_work(*this, shape);
    case LayerKind::kExtension:
      return extension_work(*this, shape);
  }
  return {};
}

int64_t LayerDecl::num_params() const {
  int64_t count = 0;
  for (const auto& param : params) count += param.shape.count();
  return count;
}

int64_t LayerTable::num_params() const {
  int64_t count = 0;
  for (const auto& layer : layers) count += layer.num_params();
  return count;
}

Work LayerTable::step_work(const BatchShape& shape) const {
  Work total;
  for (const auto& layer : layers) total += layer.forward(shape).scaled(3.0);
  return total;
}

LayerTable make_layer_table(const ModelOptions& options) {
  if (options.extension == nullptr) return base_table(options);
  return options.extension->what->table(options, options.extension->own);
}

LayerTable base_table(const ModelOptions& options) {
  if (options.family == "pixel_dit") return families::pixel_dit_table(options);
  if (is_language_model(options)) return families::language_table(options);
  if (is_latent_diffusion(options)) return families::diffusion_table(diffusion_options(options));
  if (is_autoencoder(options)) return families::autoencoder_table(autoencoder_options(options));
  throw InvalidInput("model.family", fmt::format("expected one of pixel_dit, dit, pixart, sd3, flux, "
                                                 "autoencoder, llama, qwen2, got '{}'. Choose one",
                                                 options.family));
}

}  // namespace chiliad::spec
