#pragma once

#include <memory>

#include "chiliad/layers/layer.h"
#include "chiliad/spec/options/text_encoder.h"

namespace chiliad::model {

/// The layer of a text encoder. The first carry has `tokens` [B, T] int64; bert and t5 also `key_mask` [B, T]
/// bool, true where a token counts (at least one a row); bert also `token_types` [B, T] int64. After the last
/// layer `hidden` [B, T, D] is the sequence; clip_text and bert with a pooler also leave `pooled` [B, D'].
[[nodiscard]] std::unique_ptr<layers::Layer> make_text_encoder_layer(const spec::LayerDecl& decl,
                                                                     const spec::TextEncoderOptions& options);

}  // namespace chiliad::model
