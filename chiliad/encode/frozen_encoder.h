#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "chiliad/model/autoencoder.h"
#include "chiliad/spec/run_file.h"

namespace chiliad::encode {

/// Makes latents of pictures. Thread-safe.
class PictureEncoder {
 public:
  virtual ~PictureEncoder() = default;
  /// pictures: uint8 [B, H, W, 3].   returns: fp32 [B, C, h, w], or [B, 2, C, h, w], mean and logvar
  [[nodiscard]] virtual at::Tensor encode(const at::Tensor& pictures) = 0;
};

/// A text as its model gives it.
struct EncodedText {
  at::Tensor
      tokens;  ///< [T, D] fp32; with padding where the model sees it (spec::pads_captions), else without
  at::Tensor pooled;  ///< [P] fp32; undefined where the model has none
};

/// Makes rows of texts.
class CaptionEncoder {
 public:
  virtual ~CaptionEncoder() = default;
  /// One result a text; texts are padded to the longest of the call.
  [[nodiscard]] virtual std::vector<EncodedText> encode(const std::vector<std::string>& texts) = 0;
  /// Tokens of a text, for putting texts of about equal length together.
  [[nodiscard]] virtual int64_t count(const std::string& text) const = 0;
};

[[nodiscard]] model::AutoencoderPrecision autoencoder_precision(const spec::EncodersOptions& encoders);

/// The encoders that the run file names. Throws InvalidInput as their readers do.
[[nodiscard]] std::unique_ptr<PictureEncoder> open_picture_encoder(const spec::RunFile& run);
[[nodiscard]] std::unique_ptr<CaptionEncoder> open_caption_encoder(const spec::RunFile& run);

}  // namespace chiliad::encode
