#include "chiliad/weights/configs/diffusion.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/weights/detail/config_reader.h"

namespace chiliad::weights {
namespace {

using Json = nlohmann::ordered_json;
using detail::ConfigReader;

/// Flux packs squares of this side into one token before the network.
constexpr int64_t kFluxPatch = 2;

void read_heads(ConfigReader& config, spec::DiffusionOptions& options) {
  options.heads = config.needed_count("num_attention_heads");
  options.head_size = config.needed_count("attention_head_dim");
  options.depth = config.needed_count("num_layers");
}

void need_equal(ConfigReader& config, const char* key, int64_t wanted) {
  const auto value = config.count(key);
  if (value && *value != wanted)
    config.refuse(key, fmt::format("num_attention_heads * attention_head_dim = {}", wanted),
                  std::to_string(*value), "Other widths are not built");
}

/// What DiT and PixArt have in common, also as the older Transformer2DModel.
void read_transformer_2d(ConfigReader& config, spec::DiffusionOptions& options) {
  read_heads(config, options);
  options.in_channels = config.count("in_channels").value_or(4);
  options.patch = config.count("patch_size").value_or(2);
  config.only("activation_fn", "gelu-approximate");
  config.only("attention_bias", true);
  config.only("dropout", 0.0);
  config.only("norm_elementwise_affine", false);
  config.only("attention_type", "default");
  config.only("double_self_attention", false);
  config.only("only_cross_attention", false);
  config.only("use_linear_projection", false);
  config.only_null("num_vector_embeds");
  config.ignore("norm_num_groups");
  config.ignore("upcast_attention");  // scores are never narrower than fp32
}

spec::DiffusionOptions read_dit(ConfigReader& config) {
  spec::DiffusionOptions options;
  options.family = "dit";
  read_transformer_2d(config, options);
  config.only("norm_type", "ada_norm_zero");
  config.only_null("cross_attention_dim");
  options.out_channels = config.count("out_channels").value_or(options.in_channels);
  options.sample_size = config.count("sample_size").value_or(32);
  options.classes = config.count("num_embeds_ada_norm").value_or(1000);
  options.mlp_norm_eps = config.positive_number("norm_eps").value_or(1e-5);
  return options;
}

spec::DiffusionOptions read_pixart(ConfigReader& config) {
  spec::DiffusionOptions options;
  options.family = "pixart";
  read_transformer_2d(config, options);
  config.only("norm_type", "ada_norm_single");
  config.only("norm_eps", 1e-6);
  config.ignore("num_embeds_ada_norm");
  need_equal(config, "cross_attention_dim", options.width());
  options.out_channels = config.count("out_channels").value_or(options.in_channels);
  options.sample_size = config.count("sample_size").value_or(128);
  options.interpolation_scale =
      config.positive_number("interpolation_scale")
          .value_or(static_cast<double>(std::max<int64_t>(options.sample_size / 64, 1)));
  options.size_conditions = config.flag("use_additional_conditions").value_or(options.sample_size == 128);
  options.text_channels = config.needed_count("caption_channels");
  return options;
}

spec::DiffusionOptions read_sd3(ConfigReader& config) {
  spec::DiffusionOptions options;
  options.family = "sd3";
  read_heads(config, options);
  options.in_channels = config.count("in_channels").value_or(16);
  options.out_channels = config.count("out_channels").value_or(options.in_channels);
  options.patch = config.count("patch_size").value_or(2);
  options.sample_size = config.count("sample_size").value_or(128);
  options.text_channels = config.count("joint_attention_dim").value_or(4096);
  options.pooled_channels = config.count("pooled_projection_dim").value_or(2048);
  options.max_positions = config.count("pos_embed_max_size").value_or(96);
  options.dual_attention_layers = config.integers("dual_attention_layers", 0, {});
  need_equal(config, "caption_projection_dim", options.width());
  config.only("qk_norm", "rms_norm");
  options.qk_norm = config.find("qk_norm") != nullptr;
  return options;
}

spec::DiffusionOptions read_flux(ConfigReader& config) {
  spec::DiffusionOptions options;
  options.family = "flux";
  read_heads(config, options);
  options.single_depth = config.needed_count("num_single_layers");
  config.only("patch_size", 1);
  options.patch = kFluxPatch;
  const int64_t squares = kFluxPatch * kFluxPatch;
  const int64_t in = config.count("in_channels").value_or(64);
  const int64_t out = config.count("out_channels").value_or(in);
  if (in % squares != 0)
    config.refuse("in_channels", "a multiple of 4, as 2 x 2 latents are a token", std::to_string(in),
                  "Correct the file");
  if (out % squares != 0)
    config.refuse("out_channels", "a multiple of 4, as 2 x 2 latents are a token", std::to_string(out),
                  "Correct the file");
  options.in_channels = in / squares;
  options.out_channels = out / squares;
  options.text_channels = config.count("joint_attention_dim").value_or(4096);
  options.pooled_channels = config.count("pooled_projection_dim").value_or(768);
  options.guidance = config.flag("guidance_embeds").value_or(false);
  options.rope_axes = config.integers("axes_dims_rope", 0, {16, 56, 56});
  return options;
}

spec::DiffusionOptions read_by_class(ConfigReader& config) {
  const std::string name = config.text("_class_name", "");
  const std::string norm = config.text("norm_type", "");
  const bool old = name == "Transformer2DModel";
  if (name == "DiTTransformer2DModel" || (old && norm == "ada_norm_zero")) return read_dit(config);
  if (name == "PixArtTransformer2DModel" || (old && norm == "ada_norm_single")) return read_pixart(config);
  if (name == "SD3Transformer2DModel") return read_sd3(config);
  if (name == "FluxTransformer2DModel") return read_flux(config);
  if (old)
    config.refuse("norm_type", "\"ada_norm_zero\" or \"ada_norm_single\"", "\"" + norm + "\"",
                  "Others are not built");
  config.refuse("_class_name",
                "DiTTransformer2DModel, PixArtTransformer2DModel, SD3Transformer2DModel or "
                "FluxTransformer2DModel",
                "\"" + name + "\"", "Use the config.json of the transformer");
}

void write_heads(Json& json, const spec::DiffusionOptions& options) {
  json["num_attention_heads"] = options.heads;
  json["attention_head_dim"] = options.head_size;
  json["num_layers"] = options.depth;
}

void write_transformer_2d(Json& json, const spec::DiffusionOptions& options) {
  write_heads(json, options);
  json["activation_fn"] = "gelu-approximate";
  json["attention_bias"] = true;
  json["in_channels"] = options.in_channels;
  json["out_channels"] = options.out_channels;
  json["patch_size"] = options.patch;
  json["sample_size"] = options.sample_size;
  json["norm_elementwise_affine"] = false;
}

void write_dit(Json& json, const spec::DiffusionOptions& options) {
  json["_class_name"] = "DiTTransformer2DModel";
  write_transformer_2d(json, options);
  json["norm_type"] = "ada_norm_zero";
  json["norm_eps"] = options.mlp_norm_eps;
  json["num_embeds_ada_norm"] = options.classes;
}

void write_pixart(Json& json, const spec::DiffusionOptions& options) {
  json["_class_name"] = "PixArtTransformer2DModel";
  write_transformer_2d(json, options);
  json["norm_type"] = "ada_norm_single";
  json["norm_eps"] = 1e-6;
  json["cross_attention_dim"] = options.width();
  json["caption_channels"] = options.text_channels;
  json["interpolation_scale"] = options.interpolation_scale;
  json["use_additional_conditions"] = options.size_conditions;
}

void write_sd3(Json& json, const spec::DiffusionOptions& options) {
  json["_class_name"] = "SD3Transformer2DModel";
  write_heads(json, options);
  json["in_channels"] = options.in_channels;
  json["out_channels"] = options.out_channels;
  json["patch_size"] = options.patch;
  json["sample_size"] = options.sample_size;
  json["joint_attention_dim"] = options.text_channels;
  json["caption_projection_dim"] = options.width();
  json["pooled_projection_dim"] = options.pooled_channels;
  json["pos_embed_max_size"] = options.max_positions;
  json["dual_attention_layers"] = options.dual_attention_layers;
  json["qk_norm"] = options.qk_norm ? Json("rms_norm") : Json();
}

void write_flux(Json& json, const spec::DiffusionOptions& options) {
  json["_class_name"] = "FluxTransformer2DModel";
  write_heads(json, options);
  json["num_single_layers"] = options.single_depth;
  json["patch_size"] = 1;
  json["in_channels"] = options.in_channels * kFluxPatch * kFluxPatch;
  json["out_channels"] = options.out_channels * kFluxPatch * kFluxPatch;
  json["joint_attention_dim"] = options.text_channels;
  json["pooled_projection_dim"] = options.pooled_channels;
  json["guidance_embeds"] = options.guidance;
  json["axes_dims_rope"] = options.rope_axes;
}

}  // namespace

spec::DiffusionOptions parse_diffusion_config(std::string_view text, const std::string& place) {
  const Json json = detail::parse_config(text, place);
  ConfigReader config(json, place);
  spec::DiffusionOptions options = read_by_class(config);
  config.ignore("_commit_hash");
  config.finish("this model");
  return options;
}

spec::DiffusionOptions read_diffusion_config(const std::filesystem::path& path) {
  return parse_diffusion_config(detail::read_config_text(path, "a diffusion transformer"), path.string());
}

std::string write_diffusion_config(const spec::DiffusionOptions& options) {
  Json json;
  if (options.family == "dit") write_dit(json, options);
  if (options.family == "pixart") write_pixart(json, options);
  if (options.family == "sd3") write_sd3(json, options);
  if (options.family == "flux") write_flux(json, options);
  CHILIAD_CHECK(!json.empty(), "a family without a config");
  return json_text(json, 2) + "\n";
}

}  // namespace chiliad::weights
