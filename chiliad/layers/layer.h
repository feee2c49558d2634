#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "chiliad/layers/parallel_linear.h"
#include "chiliad/layers/tensor_parallel.h"
#include "chiliad/ops/linear.h"
#include "chiliad/spec/layer_table.h"

namespace chiliad::layers {

/// Named tensors that flow from layer to layer.
class Carry {
 public:
  void set(const std::string& name, at::Tensor value);
  /// Throws InternalError if it is not there.
  [[nodiscard]] const at::Tensor& get(const std::string& name) const;
  [[nodiscard]] bool has(const std::string& name) const;
  [[nodiscard]] const std::vector<std::pair<std::string, at::Tensor>>& entries() const { return entries_; }

 private:
  std::vector<std::pair<std::string, at::Tensor>> entries_;
};

/// A layer: a function of the carry and its parameters. Inside, tensor-parallel collectives run on the group
/// passed in; gradients are made by autograd over this layer alone (parallel/segment.h).
class Layer {
 public:
  /// decl: with the shapes that this rank holds (spec::tensor_shard). The group of `ranks` outlives the
  /// layer.
  explicit Layer(spec::LayerDecl decl, TensorParallel ranks = {}) : decl_(std::move(decl)), ranks_(ranks) {}
  virtual ~Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  /// Sets the carry entries that decl().writes names.
  virtual void forward(Carry& carry) const = 0;

  [[nodiscard]] const spec::LayerDecl& decl() const { return decl_; }
  /// Gives the layer its parameters, in the order of decl().params. The tensors are views of the owner's
  /// buffer.
  void bind(std::vector<at::Tensor> params);
  [[nodiscard]] const std::vector<at::Tensor>& params() const { return params_; }

 protected:
  /// The parameter `<layer name>.<name>`, or the one that is called `name` where that is none.
  [[nodiscard]] const at::Tensor& param(const std::string& name) const;
  [[nodiscard]] bool has_param(const std::string& name) const;
  /// x W^T + b with `name`.weight and, where there is one, `name`.bias.
  [[nodiscard]] at::Tensor linear(const std::string& name, const at::Tensor& x) const;
  /// `name`.weight and, where there is one, `name`.bias.
  [[nodiscard]] ops::LinearParams linear_params(const std::string& name) const;
  /// The same on the rows of all ranks, where each has some rows of the weight and of x; the exchange beside
  /// the product. x: [B, S_rank, C], S = `length`.   want_rows: the gathered rows, too.
  [[nodiscard]] GatheredLinear gather_linear(const std::string& name, const at::Tensor& x, int64_t length,
                                             bool want_rows = false) const;
  /// The same where each rank has some columns of the weight and of x; this rank's rows of the sum.
  /// x: [B, S, C_rank].   returns: [B, S_rank, D]
  [[nodiscard]] at::Tensor linear_scatter(const std::string& name, const at::Tensor& x) const;
  /// The same, all rows on every rank.   returns: [B, S, D]
  [[nodiscard]] at::Tensor linear_sum(const std::string& name, const at::Tensor& x) const;
  [[nodiscard]] const TensorParallel& ranks() const { return ranks_; }
  /// `x` in the type that this layer computes in, which is that of its parameters.
  [[nodiscard]] at::Tensor in_compute_type(const at::Tensor& x) const;

 private:
  /// Position of `<layer name>.<name>`, else of `name`, else -1.
  [[nodiscard]] int64_t find_param(const std::string& name) const;

  spec::LayerDecl decl_;
  TensorParallel ranks_;
  std::vector<at::Tensor> params_;
};

}  // namespace chiliad::layers
