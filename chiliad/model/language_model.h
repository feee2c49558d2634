#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "chiliad/layers/layer.h"
#include "chiliad/spec/options/model.h"

namespace chiliad::model {

/// Layers of Llama and Qwen2: token embedding, decoder blocks (RMS norm, rotary grouped attention, SwiGLU)
/// and a head with the final norm and the loss.   Source: transformers, modeling_llama and modeling_qwen2.
///
/// Carry: "hidden" [1, T_rank, D], each tensor-parallel rank's rows. The head writes "loss", the sum of
/// weight * loss (equal on all ranks; its upstream gradient is the sum of what they give), and "token_losses"
/// [T]. A tied head reads "embedding_weight", the embedding's table passed on as an activation, so that both
/// uses meet in one gradient and no storage is shared. Where the carry has no "targets" the head writes
/// "logits" [T, V_rank] instead, for generation.
[[nodiscard]] std::unique_ptr<layers::Layer> make_language_layer(const spec::LayerDecl& decl,
                                                                 const spec::ModelOptions& options,
                                                                 layers::TensorParallel ranks);

/// Documents one after the other.
struct TextBatch {
  at::Tensor tokens;         ///< [T] int64
  at::Tensor cu_seqlens;     ///< [D + 1] int64 or int32 on the host: where documents begin, then T
  at::Tensor targets;        ///< [T] int64: the next token, or -100; undefined: logits are wanted
  at::Tensor token_weights;  ///< [T] fp32
};

/// The carry that the first layer takes: the batch, "positions" [T] that count from 0 in each document, and
/// their rotary tables "rope_cos" and "rope_sin" [T, head size / 2] fp32.
[[nodiscard]] layers::Carry make_text_input(const spec::ModelOptions& options, const TextBatch& batch);

}  // namespace chiliad::model
