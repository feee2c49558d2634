#include "chiliad/weights/key_tables/model_keys.h"

#include "chiliad/weights/key_tables/autoencoder.h"
#include "chiliad/weights/key_tables/diffusion.h"

namespace chiliad::weights {
namespace {

using enum KeyRule::Kind;

std::vector<KeyRule> language_rules(bool tied) {
  std::vector<KeyRule> rules{
      {R"(rotary_emb\.inv_freq$)", "", kIgnore},
      {R"(^language_model\.(model|lm_head)\.)", "$1.", kRename},
      {R"(^model\.language_model\.)", "model.", kRename},
      {R"(^(layers|embed_tokens|norm)\.)", "model.$1.", kRename},
      // Of LLaVA's files the language model alone.
      {R"(^(model\.)?(vision_tower|multi_modal_projector|mm_projector|image_newline)(\.|$))", "", kIgnore},
  };
  if (tied) rules.push_back({R"(^lm_head\.weight$)", "", kIgnore});
  return rules;
}

}  // namespace

KeyTable model_keys(const spec::ModelOptions& options) {
  if (spec::is_language_model(options)) return KeyTable(language_rules(options.tied));
  if (spec::is_latent_diffusion(options)) return diffusion_keys(spec::diffusion_options(options));
  return spec::is_autoencoder(options) ? autoencoder_keys() : KeyTable();
}

std::vector<std::string> published_keys_of(const spec::ModelOptions& options, const std::string& parameter) {
  if (!spec::is_latent_diffusion(options)) return {parameter};
  return diffusers_keys_of(spec::diffusion_options(options), parameter);
}

}  // namespace chiliad::weights
