#pragma once

#include <cstdint>
#include <string>

namespace chiliad::spec {

/// A text encoder; the values are those of its config.json (weights/configs/text_encoder.h).
struct TextEncoderOptions {
  std::string family;  ///< bert, clip_text, t5
  int64_t width = 0;
  int64_t depth = 0;
  int64_t heads = 0;
  int64_t head_size = 0;  ///< t5 alone has another one than width / heads
  int64_t mlp_width = 0;
  int64_t vocabulary = 0;           ///< rows of the table: at least the tokenizer's
  int64_t positions = 0;            ///< longest text in tokens; t5: 0, no limit
  std::string activation = "gelu";  ///< gelu, gelu_tanh, quick_gelu, relu
  bool gated = false;               ///< t5: activation(wi_0 x) * wi_1 x
  double norm_eps = 1e-12;
  int64_t pad_token = 0;

  int64_t token_types = 2;  ///< bert
  bool pooler = true;       ///< bert: the weights have one

  int64_t projection = 0;  ///< clip_text: width of the projected pooled output, 0 for none
  int64_t end_token = 0;   ///< clip_text: the pooled output is taken there
  bool pool_at_largest =
      false;  ///< clip_text: at the largest id instead (configs of before the end token was right)

  int64_t buckets = 32;        ///< t5: of the relative positions
  int64_t max_distance = 128;  ///< t5: from here on all positions are in the last bucket
};

}  // namespace chiliad::spec
