#pragma once

#include <ATen/core/ScalarType.h>
#include <ATen/core/Tensor.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "chiliad/layers/layer.h"
#include "chiliad/spec/options/diffusion.h"

namespace chiliad::model {

/// Layers of the diffusion transformers on latents (spec/options/diffusion.h), on one rank.
///
/// Carry: "image" [B, N, D], "text" [B, T, D], "condition" [B, D], and what a family adds (its header in
/// model/diffusion/). The head writes "prediction" [B, out_channels, H, W].
[[nodiscard]] std::unique_ptr<layers::Layer> make_diffusion_layer(const spec::LayerDecl& decl,
                                                                  const spec::DiffusionOptions& options);

/// All of them, in the order of the layer table, without parameters yet.
[[nodiscard]] std::vector<std::unique_ptr<layers::Layer>> build_diffusion(
    const spec::DiffusionOptions& options);

/// load_weights for a file or folder in the layout of diffusers or, for dit and pixart, the original one.
/// Throws InvalidInput as load_weights does, and where the embedders that a DiT file repeats in its blocks
/// differ: here they are one.
[[nodiscard]] std::vector<std::vector<at::Tensor>> load_diffusion_weights(
    const spec::DiffusionOptions& options, const std::filesystem::path& path,
    at::ScalarType type = at::kFloat);

/// Noisy latents and what they are conditioned on; entries of other families stay undefined.
/// Latents of one shape, or with `grids` a pack: items of any shapes one after another, without padding.
struct LatentBatch {
  at::Tensor
      latents;  ///< [B, C, H, W]; H and W divisible by the patch; pack: [1, R, C * patch^2], ops::patches_of
  at::Tensor grids;         ///< pack: [B, 2] int64 on the host, rows and columns of each item's patches
  at::Tensor time;          ///< [B] fp32 in 0..1000: the step (dit, pixart) or 1000 sigma (sd3, flux)
  at::Tensor labels;        ///< [B] int64: dit
  at::Tensor text;          ///< [B, T, text_channels]: pixart, sd3, flux; pack: [1, sum of T, text_channels]
  at::Tensor text_lengths;  ///< pack: [B] int64 on the host, tokens of each caption: pixart, sd3, flux
  at::Tensor
      text_mask;      ///< [B, T] bool, true where a token counts, at least one a row: pixart; undefined: all
  at::Tensor pooled;  ///< [B, pooled_channels]: sd3, flux
  at::Tensor guidance;      ///< [B] fp32, the scale itself (3.5): flux with guidance
  at::Tensor resolution;    ///< [B, 2] fp32, height and width in pixels: pixart with size_conditions
  at::Tensor aspect_ratio;  ///< [B, 1] fp32, height / width: pixart with size_conditions
};

/// The carry that the first layer takes; the prediction on a pack has the form of its latents. Throws
/// InternalError naming an entry that the family needs and `batch` lacks, or one that it does not use.
[[nodiscard]] layers::Carry make_diffusion_input(const spec::DiffusionOptions& options,
                                                 const LatentBatch& batch);

}  // namespace chiliad::model
