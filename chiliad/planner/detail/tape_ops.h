#pragma once

#include "chiliad/planner/detail/tape.h"
#include "chiliad/spec/layer_table.h"

namespace chiliad::planner::detail {

/// What the memory of a layer depends on beside its declaration.
struct TapeSetup {
  spec::BatchShape shape;
  int64_t tp = 1;
  int64_t value_bytes = 4;  ///< of activations
  int64_t threads = 1;      ///< inside an operator
  bool trained = true;
};

/// The operators of chiliad/ops and chiliad/layers on a tape: what each keeps, and what it needs for a
/// moment, as the kernels of ops/cpu make them; where ATen's stand in for them, some need one tensor more.
/// Sizes are numbers of values.
class TapeOps {
 public:
  explicit TapeOps(const TapeSetup& setup) : setup_(setup) {}

  [[nodiscard]] Tape& tape() { return tape_; }
  [[nodiscard]] const TapeSetup& setup() const { return setup_; }
  [[nodiscard]] bool is_shared() const { return setup_.tp > 1; }
  [[nodiscard]] int64_t bytes(int64_t values) const { return values * setup_.value_bytes; }
  /// The rows of `length` of the rank that has most.
  [[nodiscard]] int64_t own_rows(int64_t length) const { return (length + setup_.tp - 1) / setup_.tp; }

  Value read(int64_t size) { return tape_.input(bytes(size)); }
  Value constant(int64_t size) { return tape_.input(bytes(size), false); }
  void write(Value value) { tape_.output(value); }
  /// A view of a tensor that several views write whole.
  void write_part(Value view, int64_t size) { tape_.output_part(view, bytes(size)); }

  /// x [rows, in] W^T + b.   beside: what the caller still holds.   returns: [rows, out]
  Value linear(Value x, int64_t rows, int64_t in, int64_t out, std::vector<Value> beside = {});
  Value add(Value x, Value y, int64_t size);
  /// One that keeps its input.
  Value activation(Value x, int64_t size);
  Value swiglu(Value gate, Value up, int64_t size);
  Value layer_norm(Value x, int64_t rows, int64_t width);
  Value rms_norm(Value x, int64_t rows, int64_t width);
  /// apart: rows of several items do not lie together, and are copied first.
  Value norm_modulate(Value x, Value modulation, int64_t rows, int64_t width, bool apart = false);
  Value gated_residual(Value x, Value modulation, Value y, int64_t size);
  Value rotate(Value x, int64_t size);
  /// A view of a part of x, `whole` values, whose gradient is put together again.
  Value parts(Value x, int64_t whole);

  struct Attention {
    int64_t queries = 0;  ///< rows, over all items
    int64_t keys = 0;     ///< of one item
    int64_t length = 0;   ///< queries of one item
    int64_t heads = 0;
    int64_t head_size = 0;
  };
  /// beside: what the caller still holds.
  Value attention(std::vector<Value> inputs, const Attention& sizes, std::vector<Value> beside = {});

  /// All rows of what the ranks have of [items, length, width]; itself with one rank.
  Value gather_rows(Value x, int64_t length, int64_t width);
  /// A linear layer on all rows of what the ranks have (layers/parallel_linear.h).
  Value gathered_linear(Value x, int64_t length, int64_t in, int64_t out);
  /// Sums over the ranks: own rows of it, or all; itself with one rank.
  Value scatter_rows(Value x, int64_t length, int64_t width);
  Value sum_partial(Value x, int64_t size);
  /// What follows a linear layer cut by columns: the sum of the parts and then the bias.
  Value scattered_linear(Value x, int64_t length, int64_t in, int64_t out, bool bias);
  Value summed_linear(Value x, int64_t rows, int64_t in, int64_t out);
  Value hold(Value value) { return tape_.hold(value); }
  /// Marks a value that selective recomputation makes again.
  Value again(Value value, int64_t work_values = 0);

 private:
  /// Whether rows are put into another order for an exchange.
  [[nodiscard]] bool reorders(int64_t length) const;

  TapeSetup setup_;
  Tape tape_;
};

}  // namespace chiliad::planner::detail
