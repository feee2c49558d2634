#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "chiliad/comm/group.h"
#include "chiliad/layers/layer.h"
#include "chiliad/parallel/buffer_pool.h"
#include "chiliad/parallel/layer_layout.h"
#include "chiliad/parallel/mesh.h"
#include "chiliad/parallel/swap_tensor.h"

namespace chiliad::parallel {

struct ShardOptions {
  bool trained = true;   ///< else: no gradients and no optimizer state
  bool average = false;  ///< with a moving average
  bool keep = false;     ///< whole gradients stay between the micro-batches of a step (schedule: keep)
  at::ScalarType compute = at::kFloat;  ///< of whole parameters and gradients at work: fp32 or bf16
};

/// Memory of whole layers at work, shared by the layers of a rank.
struct LayerPools {
  BufferPool params;
  BufferPool gradients;
};

/// One layer's parameters on one rank: its shard, the whole parameters and gradients while the layer is at
/// work, and the run that it owns with its optimizer state. With dp_shard 1 the shard is whole and stays;
/// one device is the mesh of one rank. Shards, sums of gradients and optimizer state are fp32; with bf16
/// compute the shard has a bf16 copy, which is what is gathered, and gradients of one micro-batch are bf16.
///
///     shard --unshard--> whole --> forward, backward --> gradients --reduce--> shard --reduce_replicas-->
///     owned --> optimizer --gather--> shard
class ShardedLayer {
 public:
  /// Binds `layer` (local shapes) to views of the parameters. `whole`: the same layer with logical shapes.
  /// All outlive this object.
  ShardedLayer(layers::Layer& layer, const spec::LayerDecl& whole, Mesh& mesh, LayerPools& pools,
               const ShardOptions& options);

  /// Starts the gather of the whole parameters from the shards of the ranks; finish_unshard waits for it.
  void start_unshard();
  void finish_unshard();
  /// Lets the whole parameters go.
  void reshard();
  /// The shard was written (drawn, loaded): what is computed with follows.
  void publish();
  /// Before a backward pass of the layer: gradients of the whole layer, zero where they are new.
  void open_gradients();
  /// After it: bf16 gradients that stay for the step are added to their fp32 sum.
  void close_gradients();

  /// Starts the exchange that gives every rank all ranks' gradients of its shard.
  void start_reduce();
  /// Waits, sums the parts in rank order, and adds the sum to the shard's gradient of this step.
  void finish_reduce();
  /// The same between replicas: from the shard's gradients to the owned one.
  void start_reduce_replicas();
  void finish_reduce_replicas();

  /// Starts the gather of the shard from the owned runs of the replicas.
  void start_gather();
  void finish_gather();
  /// Before the optimizer writes: peers have read the parameters; the gradients of the step are used up after
  /// it.
  void begin_update();

  [[nodiscard]] const LayerLayout& layout() const { return layout_; }
  [[nodiscard]] const spec::LayerDecl& decl() const { return whole_decl_; }
  [[nodiscard]] bool trained() const { return options_.trained; }
  [[nodiscard]] bool has_whole() const { return params_.has_memory(); }

  [[nodiscard]] float* shard_params();
  [[nodiscard]] float* owned_params() { return shard_params() + layout_.owned_begin(); }
  [[nodiscard]] float* owned_gradients();
  [[nodiscard]] float* exp_avg();
  [[nodiscard]] float* exp_avg_sq();
  [[nodiscard]] float* average();  ///< null where there is none
  /// Bytes of what lives as long as the layer: shard, gradients, moments, average. Whole parameters and
  /// gradients that come and go are the pool's.
  [[nodiscard]] int64_t num_bytes() const;

 private:
  void bind();
  void allocate_gradients();
  [[nodiscard]] const at::Tensor& compute_shard() const { return narrow_.defined() ? narrow_ : shard_; }
  /// Whether gradients of several micro-batches come together before they are reduced.
  [[nodiscard]] bool gradients_stay() const { return !sharded_ || options_.keep; }

  layers::Layer& layer_;
  const spec::LayerDecl& whole_decl_;
  Mesh& mesh_;
  LayerPools& pools_;
  ShardOptions options_;
  LayerLayout layout_;
  bool sharded_;

  at::Tensor shard_;   // [shard], fp32
  at::Tensor narrow_;  // [shard], of the compute type where that is not fp32
  SwapTensor params_;
  SwapTensor grads_;
  at::Tensor sums_;               // [whole], fp32: gradients of a step that stay, where grads_ are not fp32
  at::Tensor shard_grads_;        // [shard], fp32
  bool grads_open_ = false;       // this step's gradients are in grads_
  bool has_sums_ = false;         // of an earlier slot
  bool has_shard_grads_ = false;  // an earlier slot's are in shard_grads_
  at::Tensor first_gathered_;     // [shard], for a planted bug
  at::Tensor reduced_;            // [owned]
  at::Tensor exp_avg_;
  at::Tensor exp_avg_sq_;
  at::Tensor average_;
  std::vector<at::Tensor> views_;
  std::unique_ptr<comm::Work> unsharding_;
  std::unique_ptr<comm::Work> reducing_;
  std::unique_ptr<comm::Work> gathering_;
};

}  // namespace chiliad::parallel
