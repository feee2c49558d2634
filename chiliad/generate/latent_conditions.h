#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "chiliad/features/column.h"
#include "chiliad/loader/batch.h"
#include "chiliad/model/diffusion.h"
#include "chiliad/spec/options/encoders.h"

namespace chiliad::generate {

/// The empty text, encoded: what a network sees in place of a caption.
struct EmptyText {
  at::Tensor text;    ///< [T, D] fp32; undefined without captions
  at::Tensor pooled;  ///< [P] fp32; undefined where there is none
};
/// column: null without captions.
[[nodiscard]] EmptyText empty_text(const features::Column* column);

/// Scale and shift between an autoencoder's latents and those that the model sees.
[[nodiscard]] spec::AutoencoderOptions latent_space(const spec::EncodersOptions& encoders,
                                                    const features::ColumnSummary& summary);

/// What a micro-batch's latents are conditioned on; latents, grids and time are left undefined. dropped: of
/// each item, whether it is shown without its caption or class. Mask and rows of a dropped caption are those
/// of the empty text. embedded_guidance: what a network with a guidance input is told.
[[nodiscard]] model::LatentBatch conditions_of(const spec::DiffusionOptions& network,
                                               const loader::Batch& batch, const EmptyText& empty,
                                               const std::vector<bool>& dropped, double embedded_guidance);

/// The same of encoded texts, one an item, each [T, D], and of their pooled vectors [B, P] where the network
/// takes them; size: of the pictures, in pixels.
[[nodiscard]] model::LatentBatch conditions_of_texts(const spec::DiffusionOptions& network,
                                                     const std::vector<at::Tensor>& texts,
                                                     const at::Tensor& pooled, const stepplan::Bucket& size,
                                                     double embedded_guidance);

}  // namespace chiliad::generate
