#include "chiliad/weights/start_weights.h"

#include <fmt/core.h>

#include <filesystem>
#include <tuple>

#include "chiliad/base/error.h"
#include "chiliad/spec/layer_table.h"
#include "chiliad/weights/configs/language.h"
#include "chiliad/weights/key_tables/model_keys.h"

namespace chiliad::weights {
namespace {

/// Options of language models by name, with defaults that stand for other values replaced by these.
auto named_options(const spec::ModelOptions& o) {
  const int64_t kv_heads = o.kv_heads == 0 ? o.heads : o.kv_heads;
  const int64_t head_size = o.head_size == 0 ? o.width / o.heads : o.head_size;
  return std::tuple{std::pair{"family", o.family},
                    std::pair{"width", o.width},
                    std::pair{"depth", o.depth},
                    std::pair{"heads", o.heads},
                    std::pair{"kv_heads", kv_heads},
                    std::pair{"head_size", head_size},
                    std::pair{"mlp_width", o.mlp_width},
                    std::pair{"vocabulary", o.vocabulary},
                    std::pair{"norm_eps", o.norm_eps},
                    std::pair{"tied", o.tied},
                    std::pair{"attention_bias", o.attention_bias},
                    std::pair{"mlp_bias", o.mlp_bias},
                    std::pair{"rope_theta", o.rope_theta},
                    std::pair{"rope_scaling", o.rope_scaling},
                    std::pair{"rope_factor", o.rope_factor},
                    std::pair{"rope_original_context", o.rope_original_context},
                    std::pair{"rope_low_frequency", o.rope_low_frequency},
                    std::pair{"rope_high_frequency", o.rope_high_frequency},
                    std::pair{"rope_beta_fast", o.rope_beta_fast},
                    std::pair{"rope_beta_slow", o.rope_beta_slow},
                    std::pair{"rope_attention_factor", o.rope_attention_factor}};
}

template <typename Pair>
void check_same(const std::filesystem::path& config, const Pair& theirs, const Pair& ours) {
  if (theirs.second == ours.second) return;
  throw InvalidInput(fmt::format("model.{}", theirs.first),
                     fmt::format("expected {} as in {} beside model.weights, got {}. Set it so, or leave "
                                 "model.weights out",
                                 theirs.second, config.string(), ours.second));
}

void check_config(const std::filesystem::path& path, const spec::ModelOptions& options) {
  const auto theirs = named_options(read_language_config(path));
  const auto ours = named_options(options);
  std::apply(
      [&](const auto&... their) {
        std::apply([&](const auto&... our) { (check_same(path, their, our), ...); }, ours);
      },
      theirs);
}

}  // namespace

bool check_start_weights(const WeightSource& source, const spec::ModelOptions& options) {
  const auto config = source.path().parent_path() / "config.json";
  const bool has_config = spec::is_language_model(options) && std::filesystem::exists(config);
  if (has_config) check_config(config, options);
  static_cast<void>(match_weights(spec::make_layer_table(options), source, model_keys(options)));
  return has_config;
}

}  // namespace chiliad::weights
