#include "chiliad/objective/loss_extension.h"

#include "chiliad/base/error.h"

namespace chiliad::objective {

at::Tensor extension_losses(const spec::ObjectiveOptions& options, const at::Tensor& prediction,
                            const at::Tensor& x0, const at::Tensor& noise, const at::Tensor& time) {
  const spec::ObjectiveUse& use = *options.extension;
  const auto* loss = dynamic_cast<const LossExtension*>(use.what.get());
  if (loss == nullptr) throw InternalError("objective.kind", fmt::format("'{}' has no loss here", use.name));
  const at::Tensor losses = loss->losses({prediction, x0, noise, time, options, use.own});
  if (losses.dim() != 1 || losses.size(0) != x0.size(0))
    throw InvalidInput(
        "objective.kind",
        fmt::format("{}: expected one loss an item, got a tensor of {} dimensions. Correct the "
                    "extension",
                    use.name, losses.dim()));
  return losses;
}

}  // namespace chiliad::objective
