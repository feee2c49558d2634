#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "chiliad/spec/extension.h"

namespace chiliad::objective {

/// What a loss is made of. Pictures as patches [B, N, C], or as latents [B, C, h, w]; with tensor parallelism
/// patches are this rank's rows of every item, N of them.
struct LossInputs {
  at::Tensor prediction;  ///< of the network, fp32, with a graph
  at::Tensor x0;          ///< what is to be learned
  at::Tensor noise;
  at::Tensor time;  ///< [B]: of flow matching fp32 in (0, 1], of a discrete diffusion int64 on the host
  const spec::ObjectiveOptions& options;  ///< of the base
  const spec::OwnValues& own;
};

/// Losses [B], one an item, each a mean over the item's values: ranks that share items then add up to the
/// same.
using Losses = std::function<at::Tensor(const LossInputs&)>;

/// What an extension gives for a loss.
struct LossExtension final : spec::ObjectiveExtension {
  Losses losses;
};

/// The losses of the extension that `options` use; they use one.
[[nodiscard]] at::Tensor extension_losses(const spec::ObjectiveOptions& options, const at::Tensor& prediction,
                                          const at::Tensor& x0, const at::Tensor& noise,
                                          const at::Tensor& time);

}  // namespace chiliad::objective
