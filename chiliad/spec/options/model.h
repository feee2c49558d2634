#pragma once

#include <cstdint>
#include <string>

namespace chiliad::spec {

/// Section `model`. Families: `pixel_dit`, a diffusion transformer on pixels; `llama` and `qwen2`, causal
/// language models with the parameters of Hugging Face checkpoints. Options of another family keep their
/// defaults.
struct ModelOptions {
  std::string family = "pixel_dit";
  int64_t width = 256;  ///< D
  int64_t depth = 4;    ///< transformer blocks
  int64_t heads = 4;
  std::string weights;  ///< folder or file of published weights to start from; empty: drawn by run.seed

  // pixel_dit
  int64_t patch = 8;  ///< pixels a side
  int64_t mlp_ratio = 4;
  int64_t text_layers = 1;        ///< encoder layers over the caption tokens
  int64_t text_max_tokens = 128;  ///< captions are cut here (never inside a UTF-8 character)

  // llama, qwen2
  int64_t kv_heads = 0;    ///< heads of keys and values; divides heads; 0: as many as heads
  int64_t head_size = 0;   ///< 0: width / heads
  int64_t mlp_width = 0;   ///< needed
  int64_t vocabulary = 0;  ///< rows of the embedding, as padded; needed
  double rope_theta = 10000.0;
  std::string rope_scaling = "none";  ///< none, linear, dynamic, llama3 or yarn
  double rope_factor = 1.0;
  int64_t rope_original_context = 0;   ///< dynamic, llama3, yarn: positions before the scaling
  double rope_low_frequency = 1.0;     ///< llama3
  double rope_high_frequency = 4.0;    ///< llama3
  double rope_beta_fast = 32.0;        ///< yarn
  double rope_beta_slow = 1.0;         ///< yarn
  double rope_attention_factor = 0.0;  ///< yarn: multiplies cos and sin; 0: 0.1 ln(factor) + 1
  double norm_eps = 1e-5;
  bool tied = false;            ///< the head uses the embedding's table
  bool attention_bias = false;  ///< llama: q, k, v and o; qwen2 always has biases on q, k, v alone
  bool mlp_bias = false;        ///< llama
};

/// Whether the family is a causal language model.
[[nodiscard]] inline bool is_language_model(const ModelOptions& options) {
  return options.family == "llama" || options.family == "qwen2";
}

}  // namespace chiliad::spec
