#include "chiliad/spec/detail/sections.h"

namespace chiliad::spec::detail {
namespace {

template <auto Member>
constexpr Access at = kAccess<&RunFile::objective, Member>;

}  // namespace

Section objective_section() {
  using O = ObjectiveOptions;
  using enum OnResume;
  return {
      "objective",
      "The loss. Flow matching: x_t = (1 - t) * x0 + t * noise, velocity = noise - x0.",
      {
          {"kind", at<&O::kind>, ChoiceRule{{"flow"}}, kFixed, "flow: flow matching"},
          {"prediction", at<&O::prediction>, ChoiceRule{{"sample", "velocity"}}, kFixed,
           "what the network puts out: sample (x0) or velocity"},
          {"loss", at<&O::loss>, ChoiceRule{{"velocity", "sample"}}, kFixed, "space of the squared error"},
          {"min_time", at<&O::min_time>, NumberRule{0.0, 1.0, true, false}, kFixed,
           "least divisor where a predicted sample becomes a velocity"},
          {"times", at<&O::times>, ChoiceRule{{"logit_normal", "uniform"}}, kFixed,
           "distribution of the times"},
          {"times_mean", at<&O::times_mean>, NumberRule{-10.0, 10.0, false, false}, kFixed,
           "mean of the logit_normal"},
          {"times_std", at<&O::times_std>, NumberRule{0.0, 10.0, true, false}, kFixed,
           "standard deviation of the logit_normal"},
          {"shift", at<&O::shift>, NumberRule{0.0, 100.0, true, false}, kFixed,
           "static shift of the times towards noise; 1: none"},
          {"caption_dropout", at<&O::caption_dropout>, NumberRule{0.0, 1.0, false, false}, kFixed,
           "fraction of items that are trained without their caption"},
      }};
}

}  // namespace chiliad::spec::detail
