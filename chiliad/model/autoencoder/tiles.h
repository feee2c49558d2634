#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace chiliad::model::autoencoder {

/// A part of one side, in latents.
struct Span {
  int64_t begin = 0;
  int64_t length = 0;
};

/// Spans of `tile` that cover `length`, evenly spread, neighbours with at least `overlap` in common; one span
/// where `length` is not above `tile`. overlap < tile.
[[nodiscard]] std::vector<Span> spans_of(int64_t length, int64_t tile, int64_t overlap);

/// Weights [length * scale] of each span's output: rising and falling along straight lines over
/// `overlap` where it has neighbours. At each position all spans' weights together are 1.
[[nodiscard]] std::vector<at::Tensor> blend_weights(const std::vector<Span>& spans, int64_t overlap,
                                                    int64_t scale);

/// How a picture is cut; sides in latents.
struct TiledRun {
  int64_t tile = 0;
  int64_t overlap = 0;
  int64_t in_scale = 1;   ///< input values for one latent, a side
  int64_t out_scale = 1;  ///< output values for one latent, a side
};

/// function(whole), made from the function of overlapping tiles: memory is that of input, output and one
/// tile. input: [B, C, h * in_scale, w * in_scale].   returns: fp32 [B, D, h * out_scale, w * out_scale]
[[nodiscard]] at::Tensor run_tiled(const TiledRun& run, const at::Tensor& input,
                                   const std::function<at::Tensor(const at::Tensor&)>& function);

}  // namespace chiliad::model::autoencoder
