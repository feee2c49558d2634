#include "chiliad/spec/detail/owned_options.h"

#include <fmt/core.h>

#include <string_view>
#include <vector>

#include "chiliad/spec/detail/family_sets.h"
#include "chiliad/spec/detail/sections.h"
#include "chiliad/spec/detail/value.h"

namespace chiliad::spec::detail {
namespace {

/// Options of a section that only some runs read: each keeps its default elsewhere.
struct Belongs {
  std::vector<std::string_view> names;
  std::string_view owner;
  bool (*applies)(const RunFile&);
};

struct SectionOwners {
  std::string_view section;
  std::vector<Belongs> owners;
};

SectionOwners model_owners() {
  return {
      "model",
      {
          {{"width", "depth", "heads"},
           "transformers",
           [](const RunFile& file) { return !is_autoencoder(file.model); }},
          {{"patch"},
           "diffusion transformers (pixel_dit, dit, pixart, sd3, flux)",
           [](const RunFile& file) {
             return file.model.family == "pixel_dit" || is_latent_diffusion(file.model);
           }},
          {{"text_max_tokens"},
           "families with captions (pixel_dit, pixart, sd3, flux)",
           [](const RunFile& file) { return reads_captions(file.model); }},
          {{"mlp_ratio", "text_layers"},
           "model.family pixel_dit",
           [](const RunFile& file) { return is_any(file.model, {"pixel_dit"}); }},
          {{"latent_channels"},
           "model.family dit, pixart, sd3, flux or autoencoder",
           [](const RunFile& file) { return is_latent_diffusion(file.model) || is_autoencoder(file.model); }},
          {{"latent_pixels"},
           "model.family dit, pixart, sd3 or flux",
           [](const RunFile& file) { return is_latent_diffusion(file.model); }},
          {{"learned_variance"},
           "model.family dit or pixart",
           [](const RunFile& file) {
             return is_any(file.model, {"dit", "pixart"});
           }},
          {{"sample_size"},
           "model.family dit, pixart or sd3",
           [](const RunFile& file) {
             return is_any(file.model, {"dit", "pixart", "sd3"});
           }},
          {{"text_channels"},
           "model.family pixart, sd3 or flux",
           [](const RunFile& file) {
             return is_any(file.model, {"pixart", "sd3", "flux"});
           }},
          {{"pooled_channels"},
           "model.family sd3 or flux",
           [](const RunFile& file) {
             return is_any(file.model, {"sd3", "flux"});
           }},
          {{"classes"}, "model.family dit", [](const RunFile& file) { return is_any(file.model, {"dit"}); }},
          {{"interpolation_scale", "size_conditions"},
           "model.family pixart",
           [](const RunFile& file) { return is_any(file.model, {"pixart"}); }},
          {{"max_positions", "dual_attention_layers", "qk_norm"},
           "model.family sd3",
           [](const RunFile& file) { return is_any(file.model, {"sd3"}); }},
          {{"single_depth", "guidance_input", "rope_axes"},
           "model.family flux",
           [](const RunFile& file) { return is_any(file.model, {"flux"}); }},
          {{"stage_channels", "layers_per_stage", "norm_groups", "quant_convs", "middle_attention"},
           "model.family autoencoder",
           [](const RunFile& file) { return is_autoencoder(file.model); }},
          {{"kv_heads", "head_size", "mlp_width", "vocabulary", "rope_theta", "rope_scaling", "norm_eps",
            "tied"},
           "model.family llama or qwen2",
           [](const RunFile& file) { return is_language_model(file.model); }},
          {{"attention_bias", "mlp_bias"},
           "model.family llama",
           [](const RunFile& file) { return is_any(file.model, {"llama"}); }},
          {{"rope_factor"},
           "model.rope_scaling linear, dynamic, llama3 or yarn",
           [](const RunFile& file) { return file.model.rope_scaling != "none"; }},
          {{"rope_original_context"},
           "model.rope_scaling dynamic, llama3 or yarn",
           [](const RunFile& file) { return has_original_context(file.model); }},
          {{"rope_low_frequency", "rope_high_frequency"},
           "model.rope_scaling llama3",
           [](const RunFile& file) { return is_llama3(file.model); }},
          {{"rope_beta_fast", "rope_beta_slow", "rope_attention_factor"},
           "model.rope_scaling yarn",
           [](const RunFile& file) { return is_yarn(file.model); }},
      }};
}

SectionOwners objective_owners() {
  return {
      "objective",
      {
          {{"loss", "min_time", "times", "times_mean", "times_std", "mode_scale", "shift", "dynamic_shift"},
           "objective.kind flow",
           [](const RunFile& file) { return file.objective.kind == "flow"; }},
          {{"min_time"},
           "objective.prediction sample",
           [](const RunFile& file) { return file.objective.prediction == "sample"; }},
          {{"times_mean", "times_std"},
           "objective.times logit_normal",
           [](const RunFile& file) { return file.objective.times == "logit_normal"; }},
          {{"mode_scale"},
           "objective.times mode",
           [](const RunFile& file) { return file.objective.times == "mode"; }},
          {{"shift"},
           "runs without objective.dynamic_shift",
           [](const RunFile& file) { return !file.objective.dynamic_shift; }},
          {{"noise_schedule", "beta_start", "beta_end", "train_steps", "zero_terminal_snr", "min_snr_gamma"},
           "objective.kind ddpm",
           [](const RunFile& file) { return file.objective.kind == "ddpm"; }},
          {{"beta_start", "beta_end"},
           "objective.noise_schedule linear or scaled_linear",
           [](const RunFile& file) { return file.objective.noise_schedule != "cosine"; }},
          {{"min_snr_gamma"},
           "models without learned_variance, whose loss has weights of its own",
           [](const RunFile& file) { return !file.model.learned_variance; }},
          {{"error", "kl_weight", "perceptual", "perceptual_weight"},
           "objective.kind reconstruction",
           [](const RunFile& file) { return file.objective.kind == "reconstruction"; }},
          {{"perceptual_weight"},
           "runs with objective.perceptual",
           [](const RunFile& file) { return !file.objective.perceptual.empty(); }},
          {{"embedded_guidance"},
           "models with model.guidance_input",
           [](const RunFile& file) { return file.model.guidance_input; }},
      }};
}

SectionOwners optimizer_owners() {
  return {"optimizer",
          {
              {{"decay_fraction"},
               "optimizer.decay linear",
               [](const RunFile& file) { return file.optimizer.decay == "linear"; }},
              {{"ema_warmup", "ema_inv_gamma", "ema_power", "ema_after", "ema_min"},
               "runs with optimizer.ema",
               [](const RunFile& file) { return file.optimizer.ema > 0.0; }},
              {{"ema_inv_gamma", "ema_power"},
               "optimizer.ema_warmup power",
               [](const RunFile& file) { return file.optimizer.ema_warmup == "power"; }},
              {{"ema_after", "ema_min"},
               "optimizer.ema_warmup rational or power",
               [](const RunFile& file) { return file.optimizer.ema_warmup != "none"; }},
          }};
}

SectionOwners encoder_owners() {
  return {
      "encoders",
      {
          {{"latents", "latent_scale", "latent_shift", "dtype", "batch", "compute", "tile", "tile_overlap"},
           "model.family dit, pixart, sd3 or flux",
           [](const RunFile& file) { return is_latent_diffusion(file.model); }},
          {{"latent_shift"},
           "runs with encoders.latent_scale",
           [](const RunFile& file) { return file.encoders.latent_scale > 0.0; }},
          {{"tile_overlap"},
           "runs with encoders.tile",
           [](const RunFile& file) { return file.encoders.tile > 0; }},
      }};
}

SectionOwners evaluation_owners() {
  return {"evaluation",
          {
              {{"guidance_channels"},
               "model.family dit, pixart, sd3 or flux",
               [](const RunFile& file) { return is_latent_diffusion(file.model); }},
              {{"embedded_guidance"},
               "models with model.guidance_input",
               [](const RunFile& file) { return file.model.guidance_input; }},
          }};
}

std::optional<Conflict> find_foreign(const RunFile& file, const SectionOwners& owners) {
  const Section& section = *find_section(owners.section);
  const RunFile defaults;
  for (const Belongs& belongs : owners.owners) {
    if (belongs.applies(file)) continue;
    for (const std::string_view name : belongs.names) {
      const Option& option = *find_option(section, name);
      if (option.access.value(file) == option.access.value(defaults)) continue;
      return Conflict{fmt::format("{}.{}", owners.section, name),
                      fmt::format("belongs to {}: expected {} here, got {}. Remove it", belongs.owner,
                                  format_value(option, defaults), format_value(option, file))};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Conflict> find_foreign_option(const RunFile& file) {
  static const std::vector<SectionOwners> kOwners{model_owners(), objective_owners(), optimizer_owners(),
                                                  encoder_owners(), evaluation_owners()};
  for (const SectionOwners& owners : kOwners) {
    if (auto conflict = find_foreign(file, owners)) return conflict;
  }
  return std::nullopt;
}

}  // namespace chiliad::spec::detail
