#include "chiliad/spec/detail/sections.h"

namespace chiliad::spec::detail {
namespace {

template <auto Member>
constexpr Access at = kAccess<&RunFile::evaluation, Member>;

}  // namespace

Section evaluation_section() {
  using O = EvaluationOptions;
  using enum OnResume;
  return {"evaluation",
          "What a run measures and shows of itself, with the moving average where it has one.",
          {
              {"every", at<&O::every>, WholeRule{0, 1'000'000'000}, kFree,
               "steps between losses over the items of data.held_out, whose times and noise are the same "
               "every time; "
               "0: none"},
              {"draws", at<&O::draws>, WholeRule{1, 1000}, kFree,
               "times and noises at which each of those items is measured, spread evenly over the times of "
               "training; 1 for families that have none"},
              {"samples_every", at<&O::samples_every>, WholeRule{0, 1'000'000'000}, kFree,
               "steps between pictures of the prompts in samples/ of the run directory; 0: none"},
              {"prompts", at<&O::prompts>, TextListRule{"", "texts", true}, kFree,
               "what those pictures are made from"},
              {"solver_steps", at<&O::solver_steps>, WholeRule{1, 1000}, kFree, "of each picture"},
              {"guidance", at<&O::guidance>, NumberRule{0.0, 100.0}, kFree,
               "of those pictures; none at 1, with form from_conditional at 0"},
              {"guidance_form", at<&O::guidance_form>, ChoiceRule{{"from_unconditional", "from_conditional"}},
               kFree, "c with and u without the prompt: u + guidance * (c - u), or c + guidance * (c - u)"},
              {"guidance_channels", at<&O::guidance_channels>, WholeRule{0, 4096}, kFree,
               "first channels of the latents that are guided (DiT: 3); 0: all"},
              {"embedded_guidance", at<&O::embedded_guidance>, NumberRule{0.0, 100.0}, kFree,
               "model.guidance_input: the scale that the network is told; 0: objective.embedded_guidance"},
          }};
}

}  // namespace chiliad::spec::detail
