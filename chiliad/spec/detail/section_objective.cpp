#include "chiliad/spec/detail/sections.h"
#include "chiliad/spec/extension.h"

namespace chiliad::spec::detail {
namespace {

template <auto Member>
constexpr Access at = kAccess<&RunFile::objective, Member>;

constexpr Access kKind{
    [](RunFile& file) -> Field {
      return file.objective.extension ? &file.objective.extension->name : &file.objective.kind;
    },
    [](const RunFile& file) -> Value {
      return file.objective.extension ? file.objective.extension->name : file.objective.kind;
    }};

}  // namespace

Section objective_section() {
  using O = ObjectiveOptions;
  using enum OnResume;
  return {
      "objective",
      "The loss. flow: x_t = (1 - t) * x0 + t * noise, velocity = noise - x0. ddpm: x_t = a * x0 + s * noise "
      "at whole times, velocity = a * noise - s * x0. Options of another kind keep their defaults.",
      {
          {"kind", kKind, ChoiceRule{{"flow", "ddpm", "reconstruction"}}, kFixed,
           "flow: flow matching; ddpm: discrete diffusion; reconstruction: of autoencoders"},
          {"prediction", at<&O::prediction>, ChoiceRule{{"sample", "velocity", "noise"}}, kFixed,
           "what the network puts out: sample (x0), velocity, or noise (ddpm)"},
          {"loss", at<&O::loss>, ChoiceRule{{"velocity", "sample"}}, kFixed,
           "flow: space of the squared error"},
          {"min_time", at<&O::min_time>, NumberRule{0.0, 1.0, true, false}, kFixed,
           "flow: least divisor where a predicted sample becomes a velocity"},
          {"times", at<&O::times>, ChoiceRule{{"logit_normal", "uniform", "mode"}}, kFixed,
           "flow: distribution of the times"},
          {"times_mean", at<&O::times_mean>, NumberRule{-10.0, 10.0, false, false}, kFixed,
           "mean of the logit_normal"},
          {"times_std", at<&O::times_std>, NumberRule{0.0, 10.0, true, false}, kFixed,
           "standard deviation of the logit_normal"},
          {"shift", at<&O::shift>, NumberRule{0.0, 100.0, true, false}, kFixed,
           "flow: static shift of the times towards noise; 1: none"},
          {"mode_scale", at<&O::mode_scale>, NumberRule{-1.0, 1.75, false, false}, kFixed,
           "flow, times mode: weight of the middle times"},
          {"dynamic_shift", at<&O::dynamic_shift>, BoolRule{}, kFixed,
           "flow: the shift grows with the number of image tokens, as Flux has it, in place of shift"},
          {"noise_schedule", at<&O::noise_schedule>, ChoiceRule{{"linear", "scaled_linear", "cosine"}},
           kFixed, "ddpm: how beta grows with the time"},
          {"beta_start", at<&O::beta_start>, NumberRule{0.0, 1.0, true, true}, kFixed,
           "ddpm, not cosine: the first beta"},
          {"beta_end", at<&O::beta_end>, NumberRule{0.0, 1.0, true, true}, kFixed,
           "ddpm, not cosine: the last beta"},
          {"train_steps", at<&O::train_steps>, WholeRule{2, 1'000'000}, kFixed, "ddpm: number of times"},
          {"zero_terminal_snr", at<&O::zero_terminal_snr>, BoolRule{}, kFixed,
           "ddpm: the last time is noise alone; not with prediction noise"},
          {"min_snr_gamma", at<&O::min_snr_gamma>, NumberRule{0.0, 1e6}, kFixed,
           "ddpm: caps the weight of nearly clean times (5 is usual); 0: every time weighs the same"},
          {"error", at<&O::error>, ChoiceRule{{"absolute", "squared"}}, kFixed,
           "reconstruction: error of a pixel"},
          {"kl_weight", at<&O::kl_weight>, NumberRule{0.0, 1e3}, kFixed,
           "reconstruction: weight of the latents' divergence from the normal distribution, sum beside sum"},
          {"perceptual", at<&O::perceptual>, TextRule{}, kFixed,
           "reconstruction: a TorchScript file with a frozen network from pictures [B, 3, H, W] in -1..1 to "
           "a "
           "tensor or a list of them; features of picture and reconstruction are compared (the error is "
           "added); "
           "none: no such loss",
           "none"},
          {"perceptual_weight", at<&O::perceptual_weight>, NumberRule{0.0, 1e6, true, false}, kFixed,
           "reconstruction: weight of that error beside the error of a pixel"},
          {"caption_dropout", at<&O::caption_dropout>, NumberRule{0.0, 1.0, false, false}, kFixed,
           "fraction of items that are trained without their caption, or class"},
          {"embedded_guidance", at<&O::embedded_guidance>, NumberRule{0.0, 100.0}, kFixed,
           "model.guidance_input: the guidance scale that the network is told in training"},
      }};
}

}  // namespace chiliad::spec::detail
