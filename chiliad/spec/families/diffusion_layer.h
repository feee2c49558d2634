#pragma once

#include <string>

#include "chiliad/spec/families/families.h"

namespace chiliad::spec::families {

/// What the rows of a weight's input are.
enum class Rows { kImage, kText, kBoth, kItem };

/// A layer of a diffusion transformer without parameters.
[[nodiscard]] LayerDecl diffusion_layer(LayerKind kind, const std::string& name, const std::string& component,
                                        const DiffusionOptions& options);

// Each adds parameters to `layer` by their full names, and their products to its work.

void add_linear(LayerDecl& layer, const std::string& name, int64_t in, int64_t out, Rows rows,
                Init init = Init::kXavierUniform);
/// The weight as that of a convolution.
void add_patch_projection(LayerDecl& layer, const std::string& name, const DiffusionOptions& options);
/// linear_1 and linear_2 behind features of `numbers` times, or what is embedded like them, an item.
void add_time_mlp(LayerDecl& layer, const std::string& name, int64_t width, int64_t numbers = 1);
/// linear_1 and linear_2.
void add_text_mlp(LayerDecl& layer, const std::string& name, int64_t in, int64_t width, Rows rows);
/// net.0.proj and net.2.
void add_feed_forward(LayerDecl& layer, const std::string& name, Rows rows);
/// to_q, to_k, to_v and to_out.0.   keys: rows of what keys and values are made of.
void add_attention(LayerDecl& layer, const std::string& name, Rows queries, Rows keys);
/// Image and text together: to_q, to_k, to_v, to_out.0, add_q_proj, add_k_proj, add_v_proj, to_add_out where
/// text is given, and norms of heads.
void add_joint_attention(LayerDecl& layer, const std::string& name, bool norms, bool gives_text);
/// The weight of an RMS norm of heads.
void add_head_norm(LayerDecl& layer, const std::string& name);
/// A linear layer of the condition that starts at zero.
void add_modulation(LayerDecl& layer, const std::string& name, int64_t parts);
/// The last linear layer, which starts at zero, and what a head reads and writes.
void add_prediction(LayerDecl& layer, const std::string& name, const DiffusionOptions& options);

[[nodiscard]] LayerTable dit_table(const DiffusionOptions& options);
[[nodiscard]] LayerTable pixart_table(const DiffusionOptions& options);
[[nodiscard]] LayerTable sd3_table(const DiffusionOptions& options);
[[nodiscard]] LayerTable flux_table(const DiffusionOptions& options);

}  // namespace chiliad::spec::families
