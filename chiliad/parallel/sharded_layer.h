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
};

/// One layer's parameters on one rank: its shard, the whole parameters and gradients while the layer is at
/// work, and the run that it owns with its optimizer state. With dp_shard 1 the shard is whole and stays;
/// one device is the mesh of one rank.
///
///     shard --unshard--> whole --> forward, backward --> gradients --reduce--> shard --reduce_replicas-->
///     owned --> optimizer --gather--> shard
class ShardedLayer {
 public:
  /// Binds `layer` (local shapes) to views of the parameters. `whole`: the same layer with logical shapes.
  /// All outlive this object; `pool` is shared by the layers of the rank.
  ShardedLayer(layers::Layer& layer, const spec::LayerDecl& whole, Mesh& mesh, BufferPool& pool,
               const ShardOptions& options);

  /// Starts the gather of the whole parameters from the shards of the ranks; finish_unshard waits for it.
  void start_unshard();
  void finish_unshard();
  /// Lets the whole parameters go.
  void reshard();
  /// Before a backward pass of the layer: gradients of the whole layer, zero where they are new.
  void open_gradients();

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
  /// The gradients of the step are used up.
  void clear_gradients();

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
  /// A local parameter while it is whole, fp32, dense.
  [[nodiscard]] at::Tensor whole(size_t param_index) const;

 private:
  void bind();

  layers::Layer& layer_;
  const spec::LayerDecl& whole_decl_;
  Mesh& mesh_;
  BufferPool& pool_;
  ShardOptions options_;
  LayerLayout layout_;
  bool sharded_;

  at::Tensor shard_;  // [shard]
  SwapTensor params_;
  SwapTensor grads_;
  at::Tensor shard_grads_;        // [shard]
  bool grads_open_ = false;       // this step's gradients are in grads_
  bool has_shard_grads_ = false;  // an earlier slot's are in shard_grads_
  at::Tensor first_gathered_;     // [shard], for a planted bug
  at::Tensor received_;           // parts of a reduction under way
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
