#include "chiliad/weights/configs/text_encoder.h"
#include "chiliad/base/error.h"

namespace chiliad::weights {
namespace {

using Kind = KeyRule::Kind;

KeyTable bert_keys(bool pooler) {
  std::vector<KeyRule> rules{{R"(^bert\.)", ""},
                             {R"(LayerNorm\.gamma$)", "LayerNorm.weight"},
                             {R"(LayerNorm\.beta$)", "LayerNorm.bias"},
                             {R"(^embeddings\.(position|token_type)_ids$)", "", Kind::kIgnore},
                             {R"(^cls\.)", "", Kind::kIgnore}};
  if (!pooler) rules.push_back({R"(^pooler\.)", "", Kind::kIgnore});
  return KeyTable(std::move(rules));
}

KeyTable clip_text_keys(bool projection) {
  std::vector<KeyRule> rules{{R"(^(embeddings|encoder|final_layer_norm)\.)", "text_model.$1."},
                             {R"(\.position_ids$)", "", Kind::kIgnore},
                             {R"(^(vision_model|visual_projection)\.)", "", Kind::kIgnore},
                             {R"(^logit_scale$)", "", Kind::kIgnore}};
  if (!projection) rules.push_back({R"(^text_projection\.)", "", Kind::kIgnore});
  return KeyTable(std::move(rules));
}

KeyTable t5_keys() {
  return KeyTable(std::vector<KeyRule>{{R"(^encoder\.embed_tokens\.weight$)", "shared.weight", Kind::kAlias},
                                       {R"(^decoder\.)", "", Kind::kIgnore},
                                       {R"(^lm_head\.)", "", Kind::kIgnore}});
}

}  // namespace

KeyTable text_encoder_keys(const spec::TextEncoderOptions& options) {
  if (options.family == "bert") return bert_keys(options.pooler);
  if (options.family == "clip_text") return clip_text_keys(options.projection > 0);
  CHILIAD_CHECK(options.family == "t5", "family {}", options.family);
  return t5_keys();
}

}  // namespace chiliad::weights
