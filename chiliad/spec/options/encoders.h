#pragma once

#include <cstdint>
#include <string>

namespace chiliad::spec {

/// Section `encoders`: the frozen encoders that `chiliad encode` runs over a data set, and whose columns
/// training reads in place of pixels and captions.
struct EncodersOptions {
  std::string pictures;            ///< folder of an AutoencoderKL
  std::string latents = "sample";  ///< sample: drawn anew every time; mean
  /// What models see is (latent - shift) * scale; scale 0: both as the autoencoder's config.json says.
  double latent_scale = 0.0;
  double latent_shift = 0.0;
  std::string text;              ///< folder of a text encoder with its tokenizer
  std::string dtype = "fp32";    ///< of the columns: fp32 or bf16
  int64_t batch = 8;             ///< items that go through an encoder together; changes rounding
  std::string compute = "fp32";  ///< what encoders hold and compute in: fp32 or bf16
  int64_t tile = 0;              ///< sides in pixels of what the autoencoder sees at once; 0: whole pictures
  int64_t tile_overlap = 0;      ///< pixels that tiles share
};

}  // namespace chiliad::spec
