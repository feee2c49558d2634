#include "chiliad/weights/key_tables/model_keys.h"

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
  if (!spec::is_language_model(options)) return KeyTable();
  return KeyTable(language_rules(options.tied));
}

}  // namespace chiliad::weights
