#include "chiliad/spec/detail/cross_checks.h"

#include <fmt/core.h>

#include <string_view>
#include <utility>
#include <vector>

#include "chiliad/spec/detail/sections.h"
#include "chiliad/spec/detail/value.h"

namespace chiliad::spec::detail {
namespace {

using Found = std::optional<Conflict>;

/// Options that only some families or scalings have: each keeps its default elsewhere.
struct Belongs {
  std::vector<std::string_view> names;
  std::string_view owner;
  bool (*applies)(const ModelOptions&);
};

bool is_scaled(const ModelOptions& model) {
  return model.rope_scaling != "none";
}
bool is_llama3(const ModelOptions& model) {
  return model.rope_scaling == "llama3";
}
bool is_yarn(const ModelOptions& model) {
  return model.rope_scaling == "yarn";
}

const std::vector<Belongs>& owned_options() {
  static const std::vector<Belongs> kOwned{
      {{"patch", "mlp_ratio", "text_layers", "text_max_tokens"},
       "model.family pixel_dit",
       [](const ModelOptions& model) { return model.family == "pixel_dit"; }},
      {{"kv_heads", "head_size", "mlp_width", "vocabulary", "rope_theta", "rope_scaling", "norm_eps", "tied"},
       "model.family llama or qwen2",
       is_language_model},
      {{"attention_bias", "mlp_bias"},
       "model.family llama",
       [](const ModelOptions& model) { return model.family == "llama"; }},
      {{"rope_factor"}, "model.rope_scaling linear, llama3 or yarn", is_scaled},
      {{"rope_original_context"},
       "model.rope_scaling llama3 or yarn",
       [](const ModelOptions& model) { return is_llama3(model) || is_yarn(model); }},
      {{"rope_low_frequency", "rope_high_frequency"}, "model.rope_scaling llama3", is_llama3},
      {{"rope_beta_fast", "rope_beta_slow", "rope_attention_factor"}, "model.rope_scaling yarn", is_yarn},
  };
  return kOwned;
}

Found check_owned(const RunFile& file) {
  const Section& section = *find_section("model");
  const RunFile defaults;
  for (const Belongs& belongs : owned_options()) {
    if (belongs.applies(file.model)) continue;
    for (const std::string_view name : belongs.names) {
      const Option& option = *find_option(section, name);
      if (option.access.value(file) == option.access.value(defaults)) continue;
      return Conflict{fmt::format("model.{}", name),
                      fmt::format("belongs to {}: expected {} here, got {}. Remove it", belongs.owner,
                                  format_value(option, defaults), format_value(option, file))};
    }
  }
  return std::nullopt;
}

Found check_heads(const ModelOptions& model) {
  if (model.head_size == 0 && model.width % model.heads != 0) {
    return Conflict{"model.width",
                    fmt::format("expected a multiple of model.heads ({}), got {}. Did you mean {}?",
                                model.heads, model.width, (model.width / model.heads + 1) * model.heads)};
  }
  if (model.head_size % 2 != 0) {
    return Conflict{"model.head_size", fmt::format("expected an even number, got {}. Did you mean {}?",
                                                   model.head_size, model.head_size + 1)};
  }
  const int64_t head_size = model.width / model.heads;
  if (model.head_size == 0 && head_size % 2 != 0) {
    return Conflict{"model.heads",
                    fmt::format("expected an even head size (model.width / model.heads), got {} / {} = "
                                "{}. Change one of them",
                                model.width, model.heads, head_size)};
  }
  return std::nullopt;
}

Found check_rope(const ModelOptions& model) {
  if ((is_llama3(model) || is_yarn(model)) && model.rope_original_context == 0) {
    return Conflict{"model.rope_original_context",
                    fmt::format("expected a positive number for rope_scaling {}, got 0. Take "
                                "original_max_position_embeddings of the model's config.json",
                                model.rope_scaling)};
  }
  if (is_llama3(model) && model.rope_low_frequency >= model.rope_high_frequency) {
    return Conflict{
        "model.rope_low_frequency",
        fmt::format("expected less than model.rope_high_frequency ({}), got {}. Change one of them",
                    model.rope_high_frequency, model.rope_low_frequency)};
  }
  if (is_yarn(model) && model.rope_beta_slow >= model.rope_beta_fast) {
    return Conflict{"model.rope_beta_slow",
                    fmt::format("expected less than model.rope_beta_fast ({}), got {}. Change one of them",
                                model.rope_beta_fast, model.rope_beta_slow)};
  }
  return std::nullopt;
}

Found check_language(const ModelOptions& model) {
  if (model.kv_heads != 0 && model.heads % model.kv_heads != 0) {
    return Conflict{"model.kv_heads",
                    fmt::format("expected a divisor of model.heads ({}), got {}. Change one "
                                "of them",
                                model.heads, model.kv_heads)};
  }
  for (const auto& [key, value] :
       {std::pair{"model.mlp_width", model.mlp_width}, std::pair{"model.vocabulary", model.vocabulary}}) {
    if (value == 0) {
      return Conflict{key,
                      fmt::format("expected a positive number for family {}, got 0. Set it", model.family)};
    }
  }
  return check_rope(model);
}

Found check_multiple(const char* key, int64_t value, int64_t step) {
  if (value % step == 0) return std::nullopt;
  return Conflict{key, fmt::format("expected a multiple of data.bucket_step ({}), got {}. Did you mean {}?",
                                   step, value, (value / step + 1) * step)};
}

Found check_buckets(const DataOptions& data, int64_t patch) {
  if (data.bucket_step % patch != 0) {
    return Conflict{"data.bucket_step",
                    fmt::format("expected a multiple of model.patch ({}), got {}. Did you mean {}?", patch,
                                data.bucket_step, (data.bucket_step / patch + 1) * patch)};
  }
  if (auto conflict = check_multiple("data.bucket_min", data.bucket_min, data.bucket_step)) return conflict;
  if (auto conflict = check_multiple("data.bucket_max", data.bucket_max, data.bucket_step)) return conflict;
  if (data.bucket_min > data.resolution) {
    return Conflict{"data.bucket_min",
                    fmt::format("expected at most data.resolution ({}), got {}. Change one of them",
                                data.resolution, data.bucket_min)};
  }
  if (data.bucket_max < data.resolution) {
    return Conflict{"data.bucket_max",
                    fmt::format("expected at least data.resolution ({}), got {}. Change one of them",
                                data.resolution, data.bucket_max)};
  }
  return std::nullopt;
}

}  // namespace

Found find_conflict(const RunFile& file) {
  if (auto conflict = check_owned(file)) return conflict;
  if (auto conflict = check_heads(file.model)) return conflict;
  if (is_language_model(file.model)) return check_language(file.model);
  return check_buckets(file.data, file.model.patch);
}

}  // namespace chiliad::spec::detail
