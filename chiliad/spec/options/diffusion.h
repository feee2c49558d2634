#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace chiliad::spec {

/// Diffusion transformers on latents: `dit` (classes), `pixart` (alpha and Sigma), `sd3` (SD3 and SD3.5) and
/// `flux`. Options of another family keep their defaults. The defaults are DiT-XL/2's.
struct DiffusionOptions {
  std::string family = "dit";
  int64_t heads = 16;
  int64_t head_size = 72;
  int64_t depth = 28;           ///< blocks; of flux, those with two streams
  int64_t single_depth = 0;     ///< flux: blocks with one stream
  int64_t in_channels = 4;      ///< of latents
  int64_t out_channels = 8;     ///< dit and pixart: twice in_channels, where the variance is learned
  int64_t patch = 2;            ///< latents a side
  int64_t sample_size = 32;     ///< latents a side at which patches are one position apart (flux: unused)
  int64_t text_channels = 0;    ///< of the text encoder's tokens
  int64_t pooled_channels = 0;  ///< sd3, flux: of the pooled text

  // dit
  int64_t classes = 1000;      ///< the label `classes` is the null class
  int64_t time_shift = 1;      ///< time features: 1 as diffusers makes them, 0 as the original code
  double mlp_norm_eps = 1e-5;  ///< norm before the MLP: 1e-5 in diffusers, 1e-6 in the original code

  // pixart
  double interpolation_scale = 1.0;  ///< positions are divided by it
  bool size_conditions = false;      ///< resolution and aspect ratio (alpha, 1024 pixels)

  // sd3
  int64_t max_positions = 96;                  ///< rows and columns of the position table
  std::vector<int64_t> dual_attention_layers;  ///< blocks with a second attention of the image alone
  bool qk_norm = false;                        ///< RMS norm of queries and keys

  // flux
  bool guidance = false;                          ///< the guidance scale is an input
  std::vector<int64_t> rope_axes = {16, 56, 56};  ///< values of a head that each axis turns

  [[nodiscard]] int64_t width() const { return heads * head_size; }
  [[nodiscard]] int64_t null_class() const { return classes; }
};

}  // namespace chiliad::spec
