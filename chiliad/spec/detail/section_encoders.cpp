#include "chiliad/spec/detail/sections.h"

namespace chiliad::spec::detail {
namespace {

template <auto Member>
constexpr Access at = kAccess<&RunFile::encoders, Member>;

}  // namespace

Section encoders_section() {
  using O = EncodersOptions;
  using enum OnResume;
  return {
      "encoders",
      "Frozen encoders of families that work on latents: `chiliad encode RUN.yaml` runs them over the data, "
      "and training reads what they made.",
      {
          {"pictures", at<&O::pictures>, TextRule{}, kFree,
           "folder of an AutoencoderKL (Hugging Face layout); may move: training checks its identity"},
          {"latents", at<&O::latents>, ChoiceRule{{"sample", "mean"}}, kFixed,
           "sample: drawn from each picture's distribution every time that it is shown; mean: its mean"},
          {"latent_scale", at<&O::latent_scale>, NumberRule{0.0, 1e6}, kFixed,
           "the model sees (latent - latent_shift) * latent_scale; 0: both as the autoencoder's config.json "
           "says"},
          {"latent_shift", at<&O::latent_shift>, NumberRule{-1e6, 1e6}, kFixed, "see latent_scale"},
          {"text", at<&O::text>, TextRule{}, kFree,
           "folder of a text encoder with its tokenizer (BERT, CLIP or T5, Hugging Face layout); may move, "
           "its "
           "identity is checked"},
          {"dtype", at<&O::dtype>, ChoiceRule{{"fp32", "bf16"}}, kFixed, "of what is stored"},
          {"batch", at<&O::batch>, WholeRule{1, 4096}, kFixed,
           "items that go through an encoder together; another one rounds differently"},
          {"compute", at<&O::compute>, ChoiceRule{{"fp32", "bf16"}}, kFixed,
           "what encoders, and the decoder of generated pictures, hold and compute in"},
          {"tile", at<&O::tile>, WholeRule{0, 1 << 20}, kFixed,
           "sides in pixels of what the autoencoder sees of a picture at once, for large ones (usual: 512); "
           "0: "
           "all of it"},
          {"tile_overlap", at<&O::tile_overlap>, WholeRule{0, 1 << 20}, kFixed,
           "pixels that neighbouring tiles share and blend (usual: 128)"},
      }};
}

}  // namespace chiliad::spec::detail
