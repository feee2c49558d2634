#include "chiliad/spec/options/model.h"

namespace chiliad::spec {

DiffusionOptions diffusion_options(const ModelOptions& options) {
  DiffusionOptions made;
  made.family = options.family;
  made.heads = options.heads;
  made.head_size = options.width / options.heads;
  made.depth = options.depth;
  made.single_depth = options.single_depth;
  made.in_channels = options.latent_channels;
  made.out_channels = options.latent_channels * (options.learned_variance ? 2 : 1);
  made.patch = options.patch;
  made.sample_size = options.sample_size;
  made.text_channels = options.text_channels;
  made.pooled_channels = options.pooled_channels;
  made.classes = options.classes;
  made.interpolation_scale = options.interpolation_scale;
  made.size_conditions = options.size_conditions;
  made.max_positions = options.max_positions;
  made.dual_attention_layers = options.dual_attention_layers;
  made.qk_norm = options.qk_norm;
  made.guidance = options.guidance_input;
  made.rope_axes = options.rope_axes;
  return made;
}

AutoencoderOptions autoencoder_options(const ModelOptions& options) {
  AutoencoderOptions made;
  made.stage_channels = options.stage_channels;
  made.layers_per_stage = options.layers_per_stage;
  made.latent_channels = options.latent_channels;
  made.norm_groups = options.norm_groups;
  made.quant_conv = made.post_quant_conv = options.quant_convs;
  made.middle_attention = options.middle_attention;
  made.scaling_factor = 1.0;  // what trains it knows no scale: `chiliad encode` measures it
  return made;
}

int64_t token_pixels(const ModelOptions& options) {
  if (is_autoencoder(options)) return autoencoder_options(options).factor();
  return is_latent_diffusion(options) ? options.patch * options.latent_pixels : options.patch;
}

}  // namespace chiliad::spec
