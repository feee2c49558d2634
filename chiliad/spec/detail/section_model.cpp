#include "chiliad/spec/detail/sections.h"

namespace chiliad::spec::detail {
namespace {

template <auto Member>
constexpr Access at = kAccess<&RunFile::model, Member>;

}  // namespace

Section model_section() {
  using O = ModelOptions;
  using enum OnResume;
  return {"model",
          "The network.",
          {
              {"family", at<&O::family>, ChoiceRule{{"pixel_dit"}}, kFixed,
               "pixel_dit: a diffusion transformer on pixels"},
              {"width", at<&O::width>, WholeRule{8, 65536}, kFixed,
               "width of the residual stream; divisible by heads, width / heads even"},
              {"depth", at<&O::depth>, WholeRule{1, 1024}, kFixed, "transformer blocks"},
              {"heads", at<&O::heads>, WholeRule{1, 1024}, kFixed, "attention heads"},
              {"patch", at<&O::patch>, WholeRule{1, 256}, kFixed, "pixels a side of a patch"},
              {"mlp_ratio", at<&O::mlp_ratio>, WholeRule{1, 64}, kFixed,
               "width of the MLP as a multiple of width"},
              {"text_layers", at<&O::text_layers>, WholeRule{0, 256}, kFixed,
               "encoder layers over the caption's tokens"},
              {"text_max_tokens", at<&O::text_max_tokens>, WholeRule{1, 65536}, kFixed,
               "captions are cut here, never inside a UTF-8 character"},
          }};
}

}  // namespace chiliad::spec::detail
