#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "chiliad/base/shape.h"
#include "chiliad/comm/group.h"
#include "chiliad/layers/layer.h"

namespace chiliad::parallel {

/// One layer's parameters on one data-parallel rank: whole parameters and gradients in flat fp32 buffers, and
/// the run of them that this rank owns (cut at row borders) with its optimizer state. Replicated data
/// parallelism with a sharded optimizer; one device is the case of one rank.
class ShardedLayer {
 public:
  /// Binds `layer` to views of the parameter buffer. Both outlive this object's use. `average` asks for a
  /// moving average.
  ShardedLayer(layers::Layer& layer, int rank, int num_ranks, bool average);

  /// Starts the exchange of gradient shards: every rank receives all ranks' gradients of its own run.
  void start_reduce(comm::Group& group);
  /// Waits, and sums the parts in rank order into the owned gradient.
  void finish_reduce();
  /// Starts the gather of all runs of the parameters.
  void start_gather(comm::Group& group);
  void finish_gather();
  void zero_gradients();

  /// A run of one parameter inside the owned run.
  struct Piece {
    const spec::ParamDecl* param = nullptr;
    int64_t offset = 0;  ///< in the owned run
    int64_t count = 0;
    Box box;  ///< in the parameter
  };
  [[nodiscard]] const std::vector<Piece>& pieces() const { return pieces_; }
  [[nodiscard]] const spec::LayerDecl& decl() const { return layer_.decl(); }

  [[nodiscard]] int64_t num_owned() const { return end_ - begin_; }
  [[nodiscard]] float* owned_params();
  [[nodiscard]] float* owned_gradients();
  [[nodiscard]] float* exp_avg();
  [[nodiscard]] float* exp_avg_sq();
  [[nodiscard]] float* average();  ///< null where there is none
  /// The whole parameter, fp32, dense.
  [[nodiscard]] at::Tensor whole(size_t param_index) const;
  /// The local, unreduced gradient of a whole parameter.
  [[nodiscard]] at::Tensor local_gradient(size_t param_index) const;
  /// Where the owned run lies in the layer's flat buffer.
  [[nodiscard]] int64_t owned_begin() const { return begin_; }

 private:
  void make_pieces();

  layers::Layer& layer_;
  int rank_;
  std::vector<int64_t> cuts_;
  std::vector<int64_t> counts_;
  int64_t begin_;
  int64_t end_;
  at::Tensor params_;    // [all]
  at::Tensor grads_;     // [all]
  at::Tensor received_;  // [ranks * owned]
  at::Tensor reduced_;   // [owned]
  at::Tensor exp_avg_;
  at::Tensor exp_avg_sq_;
  at::Tensor average_;
  std::vector<at::Tensor> views_;
  std::vector<at::Tensor> grad_views_;
  std::vector<Piece> pieces_;
  std::unique_ptr<comm::Work> reducing_;
  std::unique_ptr<comm::Work> gathering_;
};

}  // namespace chiliad::parallel
