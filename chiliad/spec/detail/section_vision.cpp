#include "chiliad/spec/detail/sections.h"

namespace chiliad::spec::detail {
namespace {

template <auto Member>
constexpr Access at = kAccess<&RunFile::vision, Member>;

}  // namespace

Section vision_section() {
  using O = VisionOptions;
  using enum OnResume;
  return {
      "vision",
      "Conversations about pictures as items of a language model: planned and loaded; training on them is "
      "not "
      "there yet.",
      {
          {"template", at<&O::chat_template>, ChoiceRule{{"none", "plain", "vicuna", "chatml", "llama3"}},
           kContent,
           "none: items are documents; else the index holds conversations, and turns are written as LLaVA's "
           "first stage (plain), LLaVA-1.5 (vicuna), Qwen (chatml) or Llama 3 (llama3) writes them; targets "
           "are the answers"},
          {"side", at<&O::side>, WholeRule{14, 4096}, kContent,
           "of the square that the vision encoder sees, pixels; a multiple of patch"},
          {"patch", at<&O::patch>, WholeRule{1, 256}, kContent, "of the vision encoder, pixels"},
          {"fit", at<&O::fit>, ChoiceRule{{"pad", "crop", "tiles"}}, kContent,
           "pad: to a square, as LLaVA-1.5; crop: its middle; tiles: LLaVA-NeXT's for a conversation of one "
           "picture, pad for several"},
          {"width", at<&O::width>, WholeRule{1, 65536}, kFree,
           "of the vision encoder: how much work a tile is"},
          {"depth", at<&O::depth>, WholeRule{1, 1024}, kFree, "the same"},
      }};
}

}  // namespace chiliad::spec::detail
