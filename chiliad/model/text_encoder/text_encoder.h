#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "chiliad/layers/layer.h"
#include "chiliad/spec/options/text_encoder.h"
#include "chiliad/weights/configs/sentence_encoder.h"

namespace chiliad::model {

struct TextEncoding {
  at::Tensor sequence;  ///< [B, T, D]; rows of padding are zero, but clip_text's are as its users take them
  /// bert: pooler output; clip_text: at the end token, projected where the model does; else undefined.
  at::Tensor pooled;
  /// Where asked: the input of each block, then the output of the last, before the last norm. [B, T, D]
  std::vector<at::Tensor> hidden;
};

/// A frozen BERT, CLIP text or T5 encoder. Inference alone; immutable, thread-safe.
class TextEncoder {
 public:
  /// Reads config.json, weights and modules.json (where there is one) of a folder in the Hugging Face layout.
  /// Weights of any floating type are converted to `type`: fp32 or bf16, never fp16, in which T5 overflows.
  /// Throws InvalidInput as the readers do.
  [[nodiscard]] static TextEncoder open(const std::filesystem::path& folder,
                                        at::ScalarType type = at::kFloat);
  /// params: by layer of spec::families::text_encoder_table, in the order of decl().params.
  TextEncoder(const spec::TextEncoderOptions& options, std::vector<std::vector<at::Tensor>> params);

  /// tokens: [B, T] int64 with T at most options().positions; mask: [B, T], not zero where a token counts
  /// (the first of each row does). Padding follows the text and changes nothing. Throws InvalidInput for
  /// ids outside of the vocabulary, texts that are too long, and clip_text rows without an end token.
  /// token_types: [B, T] int64, of bert; undefined: all 0.
  [[nodiscard]] TextEncoding encode(const at::Tensor& tokens, const at::Tensor& mask,
                                    bool want_hidden = false, const at::Tensor& token_types = {}) const;

  /// One vector a text, as modules.json of the folder says. fp32. Throws InvalidInput as encode, and where
  /// the folder has none.
  /// tokens, mask: as encode.   returns: [B, D]
  [[nodiscard]] at::Tensor embed(const at::Tensor& tokens, const at::Tensor& mask) const;

  [[nodiscard]] const spec::TextEncoderOptions& options() const { return options_; }
  /// Tokens of the longest text, special ones counted; 0: no limit. text::fit_tokens cuts to it.
  [[nodiscard]] int64_t max_tokens() const;

 private:
  void check(const at::Tensor& tokens, const at::Tensor& mask) const;

  spec::TextEncoderOptions options_;
  std::optional<weights::SentenceOptions> sentence_;
  std::vector<std::unique_ptr<layers::Layer>> layers_;
};

/// Mean of the rows that count, each sum divided by its 2-norm, as sentence-transformers do. fp32.
/// sequence: [B, T, D]; mask: [B, T].   returns: [B, D]
[[nodiscard]] at::Tensor mean_embedding(const at::Tensor& sequence, const at::Tensor& mask,
                                        bool normalise = true);

}  // namespace chiliad::model
