#include "chiliad/spec/detail/sections.h"

namespace chiliad::spec::detail {
namespace {

template <auto Member>
constexpr Access at = kAccess<&RunFile::optimizer, Member>;

}  // namespace

Section optimizer_section() {
  using O = OptimizerOptions;
  using enum OnResume;
  return {
      "optimizer",
      "AdamW with decoupled weight decay (matrices only), clipping by the global norm, warm-up, decay, "
      "moving average.",
      {
          {"kind", at<&O::kind>, ChoiceRule{{"adamw"}}, kFixed, "adamw"},
          {"lr", at<&O::lr>, NumberRule{0.0, 1.0, true, false}, kFree, "learning rate after the warm-up"},
          {"beta1", at<&O::beta1>, NumberRule{0.0, 1.0, false, true}, kFixed, "decay of the first moment"},
          {"beta2", at<&O::beta2>, NumberRule{0.0, 1.0, false, true}, kFixed, "decay of the second moment"},
          {"eps", at<&O::eps>, NumberRule{0.0, 1.0, true, false}, kFixed,
           "added to the root of the second moment"},
          {"weight_decay", at<&O::weight_decay>, NumberRule{0.0, 10.0, false, false}, kFixed,
           "decoupled, times the learning rate; matrices only"},
          {"clip", at<&O::clip>, NumberRule{0.0, 1e9, false, false}, kFree,
           "largest global norm of the gradient; 0: no clipping"},
          {"warmup_steps", at<&O::warmup_steps>, WholeRule{0, 1'000'000'000}, kFree,
           "steps over which the learning rate rises from 0"},
          {"decay", at<&O::decay>, ChoiceRule{{"constant", "linear", "cosine"}}, kFree,
           "how the learning rate falls after the warm-up"},
          {"decay_fraction", at<&O::decay_fraction>, NumberRule{0.0, 1.0, true, false}, kFree,
           "linear: the last part of the run, over which the rate falls to 0"},
          {"frozen", at<&O::frozen>,
           TextListRule{.pattern = "^[a-z_]+$", .words = "components of the model", .may_be_empty = true},
           kFixed,
           "components that are not trained (no gradients, no optimizer state), by the names that --check "
           "lists: embedding, backbone, head, text_encoder, positions, encoder, decoder"},
          {"ema", at<&O::ema>, NumberRule{0.0, 1.0, false, true}, kFixed,
           "decay of the moving average of the weights; 0: none"},
          {"ema_warmup", at<&O::ema_warmup>, ChoiceRule{{"rational", "power", "none"}}, kFixed,
           "how that decay rises, n updates after ema_after: rational (1 + n) / (10 + n), power 1 - (1 + n / "
           "ema_inv_gamma)^-ema_power, none: not at all (DiT)"},
          {"ema_inv_gamma", at<&O::ema_inv_gamma>, NumberRule{0.0, 1e9, true, false}, kFixed,
           "see ema_warmup"},
          {"ema_power", at<&O::ema_power>, NumberRule{0.0, 10.0, true, false}, kFixed, "see ema_warmup"},
          {"ema_after", at<&O::ema_after>, WholeRule{0, 1'000'000'000}, kFixed,
           "with a warm-up: updates up to which the average is the weights themselves"},
          {"ema_min", at<&O::ema_min>, NumberRule{0.0, 1.0, false, true}, kFixed,
           "with a warm-up: least decay after those"},
      }};
}

}  // namespace chiliad::spec::detail
