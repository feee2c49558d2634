#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "chiliad/model/text_encoder/text_encoder.h"
#include "chiliad/spec/options/encoders.h"
#include "chiliad/text/tokenizer.h"

namespace chiliad::encode {

/// Folders of a text encoder and its tokenizer, and what it holds and computes in.
struct TowerFiles {
  std::filesystem::path tokenizer;
  std::filesystem::path encoder;
  at::ScalarType type = at::kFloat;
};
[[nodiscard]] at::ScalarType text_precision(const spec::EncodersOptions& encoders);

/// A text encoder with its tokenizer.
class TextTower {
 public:
  /// max_tokens: texts are cut to so many; 0: as many as the encoder has positions. Throws InvalidInput as
  /// the readers do, and naming model.text_max_tokens where the encoder has fewer positions.
  TextTower(const TowerFiles& files, int64_t max_tokens);

  /// Rows of tokens with the tokenizer's padding behind them.
  struct Rows {
    at::Tensor tokens;            ///< [B, T] int64
    std::vector<int64_t> counts;  ///< [B] without padding
  };
  /// length: T; 0: that of the longest text.
  [[nodiscard]] Rows rows_of(const std::vector<std::string>& texts, int64_t length) const;
  /// attend_padding: as pipelines do that give no mask.
  [[nodiscard]] model::TextEncoding encode(const Rows& rows, bool attend_padding,
                                           bool want_hidden = false) const;
  [[nodiscard]] int64_t count(const std::string& text) const;
  [[nodiscard]] int64_t max_tokens() const { return max_tokens_; }
  [[nodiscard]] const spec::TextEncoderOptions& options() const { return encoder_.options(); }

 private:
  std::unique_ptr<text::Tokenizer> tokenizer_;
  model::TextEncoder encoder_;
  int64_t max_tokens_;
  int64_t pad_token_;
};

}  // namespace chiliad::encode
