#include "chiliad/spec/detail/sections.h"
#include "chiliad/spec/extension.h"

namespace chiliad::spec::detail {
namespace {

using O = ModelOptions;
using enum OnResume;

template <auto Member>
constexpr Access at = kAccess<&RunFile::model, Member>;

constexpr Access kFamily{[](RunFile& file) -> Field {
                           return file.model.extension ? &file.model.extension->name : &file.model.family;
                         },
                         [](const RunFile& file) -> Value {
                           return file.model.extension ? file.model.extension->name : file.model.family;
                         }};

std::vector<Option> shared_options() {
  return {
      {"family", kFamily,
       ChoiceRule{{"pixel_dit", "dit", "pixart", "sd3", "flux", "autoencoder", "llama", "qwen2"}}, kFixed,
       "pixel_dit: a diffusion transformer on pixels; dit, pixart, sd3, flux: on latents, see section "
       "encoders; autoencoder: what makes latents; llama, qwen2: causal language models. Options of another "
       "family keep their defaults"},
      {"width", at<&O::width>, WholeRule{8, 65536}, kFixed,
       "width of the residual stream; divisible by heads unless head_size is given"},
      {"depth", at<&O::depth>, WholeRule{1, 1024}, kFixed, "transformer blocks"},
      {"weights", at<&O::weights>, TextRule{}, kFree,
       "folder (Hugging Face layout) or .safetensors file of weights to start from, as drawn ones where it "
       "is not given; "
       "a run that resumes has its own"},
      {"heads", at<&O::heads>, WholeRule{1, 1024}, kFixed, "attention heads; their size is even"},
  };
}

std::vector<Option> picture_options() {
  return {
      {"patch", at<&O::patch>, WholeRule{1, 256}, kFixed,
       "diffusion transformers: pixels (pixel_dit), or latents, a side of a patch"},
      {"text_max_tokens", at<&O::text_max_tokens>, WholeRule{4, 65536}, kFixed,
       "families with captions: they are cut here (pixel_dit: never inside a UTF-8 character)"},
      {"mlp_ratio", at<&O::mlp_ratio>, WholeRule{1, 64}, kFixed,
       "pixel_dit: width of the MLP as a multiple of width"},
      {"text_layers", at<&O::text_layers>, WholeRule{0, 256}, kFixed,
       "pixel_dit: encoder layers over the caption's tokens"},
  };
}

std::vector<Option> latent_options() {
  return {
      {"latent_channels", at<&O::latent_channels>, WholeRule{1, 4096}, kFixed,
       "dit, pixart, sd3, flux, autoencoder: values of a latent"},
      {"latent_pixels", at<&O::latent_pixels>, WholeRule{1, 256}, kFixed,
       "dit, pixart, sd3, flux: pixels a side of one latent of the autoencoder (8 for most)"},
      {"learned_variance", at<&O::learned_variance>, BoolRule{}, kFixed,
       "dit, pixart: the network puts out a variance beside its prediction"},
      {"sample_size", at<&O::sample_size>, WholeRule{1, 65536}, kFixed,
       "dit, pixart, sd3: latents a side at which neighbouring patches are one position apart"},
      {"text_channels", at<&O::text_channels>, WholeRule{0, 1'000'000}, kFixed,
       "pixart, sd3, flux: values of a token of the text encoder; needed"},
      {"pooled_channels", at<&O::pooled_channels>, WholeRule{0, 1'000'000}, kFixed,
       "sd3, flux: values of the pooled text; needed"},
      {"classes", at<&O::classes>, WholeRule{0, 100'000'000}, kFixed,
       "dit: number of classes; captions are their numbers from 0; needed"},
      {"interpolation_scale", at<&O::interpolation_scale>, NumberRule{0.0, 1024.0, true, false}, kFixed,
       "pixart: positions are divided by it"},
      {"size_conditions", at<&O::size_conditions>, BoolRule{}, kFixed,
       "pixart: the network is told resolution and aspect ratio"},
      {"max_positions", at<&O::max_positions>, WholeRule{1, 65536}, kFixed,
       "sd3: rows and columns of the table of positions"},
      {"dual_attention_layers", at<&O::dual_attention_layers>, WholeListRule{{0, 1024}, true}, kFixed,
       "sd3: blocks with a second attention of the image alone"},
      {"qk_norm", at<&O::qk_norm>, BoolRule{}, kFixed, "sd3: RMS norm of queries and keys"},
      {"single_depth", at<&O::single_depth>, WholeRule{0, 1024}, kFixed, "flux: blocks with one stream"},
      {"guidance_input", at<&O::guidance_input>, BoolRule{}, kFixed,
       "flux: the guidance scale is an input of the network"},
      {"rope_axes", at<&O::rope_axes>, WholeListRule{{2, 65536}}, kFixed,
       "flux: values of a head that each axis turns"},
  };
}

std::vector<Option> autoencoder_options() {
  return {
      {"stage_channels", at<&O::stage_channels>, WholeListRule{{1, 65536}}, kFixed,
       "autoencoder: channels of each stage, finest first; each but the last halves the sides"},
      {"layers_per_stage", at<&O::layers_per_stage>, WholeRule{1, 64}, kFixed,
       "autoencoder: residual blocks of a stage"},
      {"norm_groups", at<&O::norm_groups>, WholeRule{1, 4096}, kFixed,
       "autoencoder: groups of channels with a norm of their own"},
      {"quant_convs", at<&O::quant_convs>, BoolRule{}, kFixed,
       "autoencoder: 1 x 1 convolutions on both sides of the latents"},
      {"middle_attention", at<&O::middle_attention>, BoolRule{}, kFixed,
       "autoencoder: attention in the middle of encoder and decoder"},
  };
}

std::vector<Option> language_options() {
  return {
      {"kv_heads", at<&O::kv_heads>, WholeRule{0, 1024}, kFixed,
       "language models: heads of keys and values, a divisor of heads; 0: as many as heads"},
      {"head_size", at<&O::head_size>, WholeRule{0, 65536}, kFixed, "language models; 0: width / heads"},
      {"mlp_width", at<&O::mlp_width>, WholeRule{0, 1'000'000}, kFixed,
       "language models: width of the MLP; needed"},
      {"vocabulary", at<&O::vocabulary>, WholeRule{0, 100'000'000}, kFixed,
       "language models: rows of the embedding, padding included; needed"},
      {"norm_eps", at<&O::norm_eps>, NumberRule{0.0, 0.1, true, false}, kFixed,
       "language models: added to the mean square in the norms"},
      {"tied", at<&O::tied>, BoolRule{}, kFixed, "language models: the head uses the embedding's table"},
      {"attention_bias", at<&O::attention_bias>, BoolRule{}, kFixed,
       "llama: biases of q, k, v and o (qwen2 always has those of q, k and v alone)"},
      {"mlp_bias", at<&O::mlp_bias>, BoolRule{}, kFixed, "llama: biases of the MLP"},
  };
}

std::vector<Option> rope_options() {
  return {
      {"rope_theta", at<&O::rope_theta>, NumberRule{1.0, 1e12, true, false}, kFixed,
       "language models: base of the rotary frequencies"},
      {"rope_scaling", at<&O::rope_scaling>, ChoiceRule{{"none", "linear", "dynamic", "llama3", "yarn"}},
       kFixed,
       "language models: how frequencies are stretched to a longer context; dynamic: by the length of each "
       "document"},
      {"rope_factor", at<&O::rope_factor>, NumberRule{1.0, 1e6}, kFixed,
       "rope_scaling linear, dynamic, llama3, yarn: times longer"},
      {"rope_original_context", at<&O::rope_original_context>, WholeRule{0, 1'000'000'000}, kFixed,
       "rope_scaling dynamic, llama3, yarn: positions before the scaling; needed there"},
      {"rope_low_frequency", at<&O::rope_low_frequency>, NumberRule{0.0, 1e6, true, false}, kFixed,
       "rope_scaling llama3: turns within the original context below which a frequency is scaled"},
      {"rope_high_frequency", at<&O::rope_high_frequency>, NumberRule{0.0, 1e6, true, false}, kFixed,
       "rope_scaling llama3: turns above which it is kept"},
      {"rope_beta_fast", at<&O::rope_beta_fast>, NumberRule{0.0, 1e6, true, false}, kFixed,
       "rope_scaling yarn: turns above which a frequency is kept"},
      {"rope_beta_slow", at<&O::rope_beta_slow>, NumberRule{0.0, 1e6, true, false}, kFixed,
       "rope_scaling yarn: turns below which it is scaled"},
      {"rope_attention_factor", at<&O::rope_attention_factor>, NumberRule{0.0, 1e3}, kFixed,
       "rope_scaling yarn: multiplies cosines and sines; 0: 0.1 ln(rope_factor) + 1"},
  };
}

}  // namespace

Section model_section() {
  Section section{"model", "The network.", shared_options()};
  for (auto&& group :
       {picture_options(), latent_options(), autoencoder_options(), language_options(), rope_options()})
    section.options.insert(section.options.end(), group.begin(), group.end());
  return section;
}

}  // namespace chiliad::spec::detail
