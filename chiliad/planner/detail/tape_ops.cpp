#include "chiliad/planner/detail/tape_ops.h"

#include <algorithm>
#include <utility>

#include "chiliad/spec/tensor_shard.h"

namespace chiliad::planner::detail {
namespace {

constexpr int64_t kStatistic = 4;  // one fp32 number a row
constexpr int64_t kFloat = 4;

/// Values of the blocks in which a thread of the CPU's attention works: scores, and rows of the result with
/// two statistics each.
int64_t attention_block(const TapeOps::Attention& sizes) {
  const int64_t most = sizes.length >= 768 ? 256 : sizes.length >= 192 ? 64 : 32;
  return std::min(most, sizes.length) * (std::min<int64_t>(512, sizes.keys) + sizes.head_size + 2);
}

}  // namespace

Value TapeOps::linear(Value x, int64_t rows, int64_t in, int64_t out, std::vector<Value> beside) {
  TapeOp op{.inputs = {x}, .result = bytes(rows * out), .beside = std::move(beside)};
  if (setup_.trained) {
    op.saved = {x};
    // In fp32 it is added in place; the bf16 kernels make it first.
    op.adds_weight_gradient = setup_.value_bytes == kFloat;
    if (!op.adds_weight_gradient) op.weight_gradient = bytes(in * out);
  }
  return tape_.add(op);
}

Value TapeOps::add(Value x, Value y, int64_t size) {
  return tape_.add({.inputs = {x, y}, .result = bytes(size), .passes_gradient = true});
}

Value TapeOps::activation(Value x, int64_t size) {
  return tape_.add({.inputs = {x}, .result = bytes(size), .saved = {x}});
}

Value TapeOps::swiglu(Value gate, Value up, int64_t size) {
  return tape_.add(
      {.inputs = {gate, up}, .result = bytes(size), .saved = {gate, up}, .backward_work = bytes(size)});
}

Value TapeOps::layer_norm(Value x, int64_t rows, int64_t width) {
  return tape_.add(
      {.inputs = {x}, .result = bytes(rows * width), .saved = {x}, .kept = 2 * kStatistic * rows});
}

Value TapeOps::rms_norm(Value x, int64_t rows, int64_t width) {
  return tape_.add({.inputs = {x}, .result = bytes(rows * width), .saved = {x}, .kept = kStatistic * rows});
}

Value TapeOps::norm_modulate(Value x, Value modulation, int64_t rows, int64_t width, bool apart) {
  const int64_t size = bytes(rows * width);
  return tape_.add({.inputs = {x},
                    .result = size,
                    .saved = {x, modulation},
                    .kept = 2 * kStatistic * rows,
                    .forward_work = apart ? size : 0,
                    .backward_work = apart ? size : 0});
}

Value TapeOps::gated_residual(Value x, Value modulation, Value y, int64_t size) {
  // The gradient of x is the result's own.
  const Value gated =
      tape_.add({.inputs = {y, modulation}, .result = 0, .gradient = bytes(size), .saved = {modulation, y}});
  return add(x, gated, size);
}

Value TapeOps::rotate(Value x, int64_t size) {
  return tape_.add({.inputs = {x}, .result = bytes(size)});
}

Value TapeOps::parts(Value x, int64_t whole) {
  return tape_.add({.inputs = {x}, .gradient = bytes(whole)});
}

Value TapeOps::attention(std::vector<Value> inputs, const Attention& sizes, std::vector<Value> beside) {
  const int64_t block = setup_.threads * attention_block(sizes) * kStatistic;
  return tape_.add({.inputs = inputs,
                    .result = bytes(sizes.queries * sizes.heads * sizes.head_size),
                    .saved = inputs,
                    .saves_result = true,
                    .kept = sizes.queries * sizes.heads * kStatistic,
                    .forward_work = block,
                    .backward_work = 2 * block,
                    .beside = std::move(beside)});
}

Value TapeOps::gather_rows(Value x, int64_t length, int64_t width) {
  if (!is_shared()) return x;
  const int64_t items = setup_.shape.items;
  const int64_t all = bytes(items * length * width);
  const int64_t copies = items > 1 ? all : 0;  // rows of several items do not lie together
  return tape_.add({.inputs = {x}, .result = all, .forward_work = copies, .backward_work = all + copies});
}

Value TapeOps::scatter_rows(Value x, int64_t length, int64_t width) {
  if (!is_shared()) return x;
  const int64_t items = setup_.shape.items;
  const int64_t all = bytes(items * length * width);
  const int64_t copies = items > 1 ? all : 0;
  return tape_.add({.inputs = {x},
                    .result = bytes(items * own_rows(length) * width),
                    .forward_work = all + copies,
                    .backward_work = copies});
}

Value TapeOps::sum_partial(Value x, int64_t size) {
  if (!is_shared()) return x;
  const int64_t all = bytes(size) * setup_.tp;
  return tape_.add({.inputs = {x}, .result = bytes(size), .forward_work = all, .backward_work = all});
}

bool TapeOps::reorders(int64_t length) const {
  return setup_.shape.items > 1 || spec::num_row_chunks(length, setup_.shape.items, setup_.tp) > 1;
}

Value TapeOps::gathered_linear(Value x, int64_t length, int64_t in, int64_t out) {
  const int64_t items = setup_.shape.items;
  if (!is_shared()) return linear(x, items * length, in, out);
  const int64_t all_in = bytes(items * length * in);
  const int64_t all_out = bytes(items * length * out);
  const int64_t own_in = reorders(length) ? bytes(items * own_rows(length) * in) : 0;
  const int64_t copy_out = reorders(length) ? all_out : 0;
  TapeOp op{.inputs = {x},
            .result = all_out,
            .forward_work = std::max(own_in, copy_out),
            .backward_work = copy_out + 2 * all_in + own_in};
  if (setup_.trained) {
    op.kept = all_in;
    op.weight_gradient = bytes(in * out);
  } else {
    op.forward_work += all_in;
  }
  return tape_.add(op);
}

Value TapeOps::scattered_linear(Value x, int64_t length, int64_t in, int64_t out, bool bias) {
  const int64_t items = setup_.shape.items;
  if (!is_shared()) return linear(x, items * length, in, out);
  const int64_t all_out = bytes(items * length * out);
  const int64_t own_out = bytes(items * own_rows(length) * out);
  const int64_t copies = reorders(length) ? bytes(items * length * in) + own_out : 0;
  TapeOp op{.inputs = {x},
            .result = own_out,
            .forward_work = 2 * all_out + copies,
            .backward_work = all_out + copies};
  if (setup_.trained) {
    op.saved = {x};
    op.weight_gradient = bytes(in * out);
  }
  const Value sum = tape_.add(op);
  if (!bias) return sum;
  return tape_.add({.inputs = {sum}, .result = own_out, .passes_gradient = true});
}

Value TapeOps::summed_linear(Value x, int64_t rows, int64_t in, int64_t out) {
  const Value sum = sum_partial(linear(x, rows, in, out), rows * out);
  if (!is_shared()) return sum;
  return tape_.add({.inputs = {sum}, .result = bytes(rows * out), .passes_gradient = true});
}

Value TapeOps::again(Value value, int64_t work_values) {
  tape_.make_again(value, bytes(work_values));
  return value;
}

}  // namespace chiliad::planner::detail
