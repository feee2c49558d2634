#pragma once

#include <cstdint>
#include <vector>

namespace chiliad::spec {

/// AutoencoderKL: pictures to latents and back by convolutions. The defaults are Stable Diffusion 1's.
struct AutoencoderOptions {
  int64_t in_channels = 3;
  int64_t out_channels = 3;
  std::vector<int64_t> stage_channels = {128, 256, 512, 512};  ///< finest first; each but the last halves
  int64_t layers_per_stage = 2;  ///< residual blocks of an encoder stage; the decoder's have one more
  int64_t latent_channels = 4;
  int64_t norm_groups = 32;
  bool quant_conv = true;        ///< 1 x 1 convolution behind the encoder
  bool post_quant_conv = true;   ///< 1 x 1 convolution before the decoder
  bool middle_attention = true;  ///< in the middles of encoder and decoder
  // What models see is (latent - shift_factor) * scaling_factor; callers apply it (model/autoencoder.h).
  double scaling_factor = 0.18215;
  double shift_factor = 0.0;
  bool force_upcast = true;  ///< fp16 overflows in it; here it never runs in fp16

  /// Pixels a side for one latent.
  [[nodiscard]] int64_t factor() const {
    return stage_channels.empty() ? 1 : int64_t{1} << (stage_channels.size() - 1);
  }
};

}  // namespace chiliad::spec
