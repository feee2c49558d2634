#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "chiliad/base/shape.h"
#include "chiliad/spec/options/model.h"

namespace chiliad::spec {

struct ExtensionLayer;

/// How a parameter starts. Draws come from Rng({seed, hash(name), Draw::kInit}), so they depend on nothing
/// else.
enum class Init {
  kZero,
  kOne,
  kXavierUniform,
  kNormal002,
  kNormalUnit,
  kGridPositions,  ///< sin-cos positions of a square grid, which training leaves alone
  kFanInUniform,   ///< within 1 / sqrt(fan in), that is, values of one output
};

/// How tensor parallelism cuts a parameter (tensor_shard.h). Rows are a linear layer's outputs, columns its
/// inputs.
enum class Split { kNone, kRows, kColumns };

/// One parameter of a layer; `name` is unique in the model and is the key in checkpoints.
struct ParamDecl {
  std::string name;
  Shape shape;
  Init init = Init::kZero;
  bool decay = false;  ///< weight decay applies (matrices only)
  Split split = Split::kNone;
  int64_t parts = 1;      ///< logical tensors of equal size, fused along the rows; each is cut by itself
  int64_t init_base = 0;  ///< kGridPositions: the grid, of [1, n * n, width], is as wide as one of this side
};

/// Sizes of a micro-batch on which work depends.
struct BatchShape {
  int64_t items = 0;
  int64_t image_tokens = 0;  ///< of one item
  int64_t text_tokens = 0;   ///< of one item, padded; a pack of documents is one item
  /// Pairs of tokens that attend to each other in the packs of a language model: the sum of length^2 over the
  /// documents, masked pairs counted. 0: every item is one document.
  double attention_pairs = 0.0;
};

/// Amounts of work by kind; seconds are their sum, each divided by its rate (work.h).
struct Work {
  double linear_flops = 0.0;     ///< matrix products with weights
  double attention_flops = 0.0;  ///< products between activations, the quadratic term
  double elementwise = 0.0;      ///< activation values touched by everything else
  double launches = 0.0;         ///< operators started: the part that does not shrink with the batch

  Work& operator+=(const Work& other);
  [[nodiscard]] Work scaled(double factor) const;
  [[nodiscard]] double flops() const { return linear_flops + attention_flops; }
};

enum class LayerKind {
  kTextEmbedding,
  kTextBlock,
  kImageEmbedding,
  kDiffusionBlock,
  kImageHead,
  kTokenEmbedding,
  kDecoderBlock,
  kLanguageHead,
  kBertEmbedding,
  kBertBlock,
  kBertPooler,
  kClipTextEmbedding,
  kClipTextBlock,
  kClipTextHead,
  kT5Embedding,
  kT5Block,
  kT5Norm,
  kAutoencoderStem,
  kAutoencoderDownStage,
  kAutoencoderLatentHead,
  kAutoencoderLatentStem,
  kAutoencoderMiddle,
  kAutoencoderUpStage,
  kAutoencoderPixelHead,
  kDitEmbedding,
  kDitBlock,
  kDitHead,
  kPixartEmbedding,
  kPixartBlock,
  kPixartHead,
  kSd3Positions,
  kSd3Embedding,
  kSd3Block,
  kSd3DualBlock,
  kSd3Head,
  kFluxEmbedding,
  kFluxDoubleBlock,
  kFluxSingleBlock,
  kFluxHead,
  kExtension,  ///< of an extension: spec/extension.h
};
/// Those of ModelOptions' families; the others belong to encoders, autoencoders and diffusion transformers.
inline constexpr int kNumModelKinds = static_cast<int>(LayerKind::kLanguageHead) + 1;

/// One layer as every part of the system sees it; the torch builder is keyed by `kind` (model/).
struct LayerDecl {
  LayerKind kind;
  std::string name;       ///< prefix of its parameters
  std::string component;  ///< text_encoder, embedding, backbone, head
  std::vector<ParamDecl> params;
  std::vector<std::string> reads;   ///< carry entries that it takes
  std::vector<std::string> writes;  ///< carry entries that it replaces or adds
  bool lends_params = false;        ///< an entry is a view of its parameters, which later layers read
  int64_t width = 0;
  int64_t hidden = 0;  ///< MLP width
  int64_t pixels = 0;  ///< values of one patch
  // Over all tensor-parallel ranks:
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_size = 0;
  int64_t vocabulary = 0;  ///< of language models
  int64_t positions = 0;   ///< of autoencoders: positions of its input for one latent
  // Of diffusion transformers and extensions, values of the weights that multiply:
  int64_t image_products = 0;                 ///< each image token
  int64_t text_products = 0;                  ///< each text token
  int64_t item_products = 0;                  ///< each item once
  std::shared_ptr<ExtensionLayer> extension;  ///< of kind kExtension; shared by copies of the declaration

  /// Forward work of a micro-batch; backward is twice that for trained layers. 1 MAC = 2 FLOPs, full
  /// attention counted.
  [[nodiscard]] Work forward(const BatchShape& shape) const;
  [[nodiscard]] int64_t num_params() const;
};

/// A model: its layers in the order of the forward pass. The one place where shapes, names, work and order
/// are declared.
struct LayerTable {
  std::vector<LayerDecl> layers;

  [[nodiscard]] int64_t num_params() const;
  /// Forward + backward.
  [[nodiscard]] Work step_work(const BatchShape& shape) const;
};

/// Those of an extension where one is in use. Throws InvalidInput for a family that is not built.
[[nodiscard]] LayerTable make_layer_table(const ModelOptions& options);

}  // namespace chiliad::spec
