#pragma once

#include <cstdint>
#include <vector>

#include "chiliad/spec/options/parallel.h"

namespace chiliad::planner::detail {

/// A tensor of a tape, by number.
using Value = int32_t;

/// One operator as autograd sees it. Bytes throughout.
struct TapeOp {
  std::vector<Value> inputs;
  int64_t result = 0;             ///< memory of the result; 0: a view of the first input
  int64_t gradient = -1;          ///< of the result's gradient; -1: as its memory
  std::vector<Value> saved = {};  ///< inputs or results that backward needs
  bool saves_result = false;
  int64_t kept = 0;                   ///< what else is kept for backward
  int64_t forward_work = 0;           ///< what is there for a moment, beside the result
  int64_t backward_work = 0;          ///< beside the gradients of the inputs
  int64_t weight_gradient = 0;        ///< of parameters, gone once it is added to their buffer
  bool adds_weight_gradient = false;  ///< in place: to their buffer, without memory of its own
  bool passes_gradient = false;       ///< the inputs' gradients are the result's own, not new memory
  std::vector<Value> beside = {};     ///< not read, but still there while it runs
};

/// What one layer needs for a micro-batch.
struct LayerMemory {
  std::vector<int64_t> outputs;          ///< of each entry that it writes
  std::vector<int64_t> input_gradients;  ///< of each entry that it reads
  struct Mode {
    int64_t kept = 0;      ///< from forward to backward, beside inputs and outputs
    int64_t forward = 0;   ///< most in forward, outputs and what is kept in it
    int64_t backward = 0;  ///< most in backward above what was there, gradients of the inputs in it
  };
  Mode none;
  Mode selective;
  Mode layers;  ///< its backward starts without the outputs: they are made again

  [[nodiscard]] const Mode& of(spec::Recompute mode) const;
  [[nodiscard]] int64_t all_outputs() const;
};

/// The operators of a layer's forward in their order. From it follow, as autograd does it, what is kept, and
/// how much is there at once in forward and in backward, with each kind of recomputation.
class Tape {
 public:
  /// An entry that the layer reads; its memory is counted elsewhere.
  Value input(int64_t bytes, bool has_gradient = true);
  /// A parameter; its memory is counted elsewhere.
  Value parameter(int64_t bytes);
  Value add(TapeOp op);
  /// Selective recomputation makes it again; `work`: bytes that this needs for a moment.
  void make_again(Value value, int64_t work = 0);
  /// A local variable of the forward: it stays until that ends.
  Value hold(Value value);
  /// An entry that the layer writes.
  void output(Value value);
  /// The same of a view, which the memory of what it is a part of is counted by.
  void output_part(Value view, int64_t bytes);

  [[nodiscard]] LayerMemory memory() const;

 private:
  struct Tensor {
    Value owner = 0;  // whose memory it has
    int64_t bytes = 0;
    int64_t gradient = 0;
    bool differentiable = false;
    bool is_input = false;
    bool is_output = false;
    bool is_held = false;
    bool again = false;
    int64_t again_work = 0;
  };
  struct Run {
    int64_t left = 0;  // at the end
    int64_t peak = 0;
  };
  class Backward;

  [[nodiscard]] const Tensor& memory_of(Value value) const;
  [[nodiscard]] Run forward(bool graph, bool selective) const;
  [[nodiscard]] std::vector<Value> saved_by(size_t op) const;
  [[nodiscard]] LayerMemory::Mode mode(bool selective) const;

  std::vector<Tensor> tensors_;
  std::vector<TapeOp> ops_;
  std::vector<Value> results_;  // of each op
  std::vector<Value> inputs_;
  std::vector<Value> outputs_;
  std::vector<int64_t> output_bytes_;
};

}  // namespace chiliad::planner::detail
