#include "chiliad/ops/cpu/attention.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "chiliad/base/error.h"
#include "chiliad/ops/cpu/micro_kernel.h"
#include "chiliad/ops/cpu/parallel.h"

CHILIAD_SIMD_BEGIN
namespace chiliad::ops::cpu {
namespace {

constexpr int64_t kQueryBlock = 128;
constexpr int64_t kKeyBlock = 256;  // values of that many keys, 32 wide, fit the first cache

enum Slot {
  kQueries,
  kKeys,
  kValues,
  kKeyColumns,
  kValueColumns,
  kUpstream,
  kScores,
  kPairs,
  kMixed,
  kOfQueries,
  kOfKeys,
  kOfValues
};

int64_t round_up(int64_t value, int64_t to) {
  return (value + to - 1) / to * to;
}

/// Rows of a tensor; a head is a run of `size` values in each.
struct HeadRows {
  HeadRows(const at::Tensor& tensor, int64_t heads)
      : data(tensor.data_ptr()),
        is_bf16(tensor.scalar_type() == at::kBFloat16),
        stride(tensor.stride(0)),
        size(tensor.size(1) / heads) {
    CHILIAD_CHECK(tensor.dim() == 2 && (tensor.stride(1) == 1 || tensor.size(1) == 1));
    CHILIAD_CHECK_EQ(size * heads, tensor.size(1));
  }

  void read(int64_t row, int64_t head, float* out) const {
    const int64_t begin = row * stride + head * size;
    if (is_bf16) {
      copy(static_cast<const Bf16*>(data) + begin, out);
    } else {
      copy(static_cast<const float*>(data) + begin, out);
    }
  }
  /// Values times `factor`.
  void write(int64_t row, int64_t head, const float* values, float factor) const {
    const int64_t begin = row * stride + head * size;
    if (is_bf16) {
      put(static_cast<Bf16*>(data) + begin, values, factor);
    } else {
      put(static_cast<float*>(data) + begin, values, factor);
    }
  }

  void* data;
  bool is_bf16;
  int64_t stride;
  int64_t size;

 private:
  template <typename T>
  void copy(const T* from, float* out) const {
    for_lanes(size, [&](int64_t i, __mmask16 lanes) { store(out + i, load(from + i, lanes)); });
  }
  template <typename T>
  void put(T* to, const float* values, float factor) const {
    for_lanes(size, [&](int64_t i, __mmask16 lanes) {
      store(to + i, _mm512_mul_ps(load(values + i, lanes), all(factor)), lanes);
    });
  }
};

/// The rows that count of a block's keys.
class KeyRows {
 public:
  KeyRows(const AttentionBlock& block, const at::Tensor& mask) : first_(block.first_key) {
    if (!mask.defined()) {
      count_ = block.num_keys;
      return;
    }
    const bool* counts = mask.const_data_ptr<bool>();
    for (int64_t row = first_; row < first_ + block.num_keys; ++row) {
      if (counts[row]) listed_.push_back(row);
    }
    count_ = static_cast<int64_t>(listed_.size());
  }
  [[nodiscard]] int64_t count() const { return count_; }
  [[nodiscard]] int64_t operator[](int64_t i) const {
    return listed_.empty() ? first_ + i : listed_[static_cast<size_t>(i)];
  }

 private:
  int64_t first_;
  int64_t count_ = 0;
  std::vector<int64_t> listed_;
};

/// Sizes of a head in memory: rows are padded to `width`, and lie `stride` apart.
struct HeadShape {
  explicit HeadShape(int64_t head_size)
      : size(head_size),
        width(round_up(head_size, kLanes)),
        stride(round_up(head_size, kTileColumns) + kLanes) {}
  int64_t size;
  int64_t width;
  int64_t stride;
};

/// Rows [n, size] become columns in panels of 32: panel [size][32], the last one filled with zeros.
void lay_columns(const float* rows, int64_t count, const HeadShape& shape, float* panels) {
  for (int64_t first = 0; first < count; first += kLanes) {
    float* panel = panels + first / kTileColumns * kTileColumns * shape.size + first % kTileColumns;
    const int64_t columns = std::min(kLanes, count - first);
    int64_t k = 0;
    if (columns == kLanes) {
      for (; k + kLanes <= shape.size; k += kLanes)
        transpose_tile(rows + first * shape.stride + k, shape.stride, panel + k * kTileColumns, kTileColumns);
    }
    for (; k < shape.size; ++k) {
      for (int64_t i = 0; i < columns; ++i)
        panel[k * kTileColumns + i] = rows[(first + i) * shape.stride + k];
    }
    const int64_t used = first % kTileColumns + columns;
    if (first + columns < count || used == kTileColumns) continue;
    for (k = 0; k < shape.size; ++k)
      std::fill(panel - first % kTileColumns + k * kTileColumns + used,
                panel - first % kTileColumns + (k + 1) * kTileColumns, 0.0F);
  }
}

/// left [rows, size] times columns: [rows, count], in rows `stride` apart.
void score(const float* left, int64_t rows, const float* columns, int64_t count, const HeadShape& shape,
           float* out, int64_t stride) {
  for (int64_t first = 0; first < count; first += kTileColumns)
    multiply_column(rows, shape.size, {left, shape.stride, 1}, {columns + first * shape.size}, out + first,
                    stride, false);
}

/// Running softmax of one query.
struct Running {
  float largest = -std::numeric_limits<float>::infinity();
  float sum = 0.0F;
};

/// Scores become e^(scale (score - largest)); what was mixed so far shrinks to the new largest.
void soften(float* scores, int64_t count, float scale, Running& running, float* mixed, int64_t width) {
  Lanes top = all(running.largest);
  for_lanes(count, [&](int64_t i, __mmask16 lanes) {
    top = _mm512_mask_max_ps(top, lanes, top, load(scores + i, lanes));
  });
  const float before = running.largest;
  running.largest = largest(top);
  const Lanes shift = all(running.largest * scale);
  Lanes total = _mm512_setzero_ps();
  for_lanes(count, [&](int64_t i, __mmask16 lanes) {
    const Lanes share = exp(_mm512_fmsub_ps(load(scores + i, lanes), all(scale), shift));
    total = _mm512_mask_add_ps(total, lanes, total, share);
    store(scores + i, share, lanes);
  });
  if (before != running.largest && running.sum > 0.0F) {
    const float shrink = std::exp((before - running.largest) * scale);
    running.sum *= shrink;
    for (int64_t i = 0; i < width; i += kLanes) store(mixed + i, _mm512_mul_ps(load(mixed + i), all(shrink)));
  }
  running.sum += sum(total);
}

/// Scores become shares, and `pairs`, products of upstream gradient and values, gradients of scores.
void soften_backward(float* scores, float* pairs, int64_t count, float scale, float log_sum, float delta) {
  for_lanes(count, [&](int64_t i, __mmask16 lanes) {
    const Lanes share = exp(_mm512_fmsub_ps(load(scores + i, lanes), all(scale), all(log_sum)));
    const Lanes apart = _mm512_sub_ps(load(pairs + i, lanes), all(delta));
    store(scores + i, share, lanes);
    store(pairs + i, _mm512_mul_ps(_mm512_mul_ps(share, all(scale)), apart), lanes);
  });
}

float dot(const float* a, const float* b, int64_t count) {
  Lanes total = _mm512_setzero_ps();
  for_lanes(count, [&](int64_t i, __mmask16 lanes) {
    total = _mm512_fmadd_ps(load(a + i, lanes), load(b + i, lanes), total);
  });
  return sum(total);
}

/// A block's head: what both passes stage.
class Head {
 public:
  Head(const AttentionInput& input, const AttentionBlock& block, int64_t head)
      : block_(block),
        head_(head),
        keys_(block, input.key_mask),
        q_(input.q, input.heads),
        k_(input.k, input.heads),
        v_(input.v, input.heads),
        shape_(q_.size),
        scale_(1.0F / std::sqrt(static_cast<float>(q_.size))) {}

 protected:
  /// Padded with zeros to `width`.
  float* stage_queries(const HeadRows& from, int64_t first, int64_t count, Slot slot) const {
    float* rows = scratch(slot, count * shape_.stride);
    for (int64_t i = 0; i < count; ++i)
      from.read(block_.first_query + first + i, head_, rows + i * shape_.stride);
    return rows;
  }
  float* stage_keys(const HeadRows& from, int64_t first, int64_t count, Slot slot) const {
    float* rows = scratch(slot, count * shape_.stride);
    for (int64_t i = 0; i < count; ++i) from.read(keys_[first + i], head_, rows + i * shape_.stride);
    return rows;
  }
  float* columns(const float* rows, int64_t count, Slot slot) const {
    float* panels = scratch(slot, round_up(count, kTileColumns) * shape_.size);
    lay_columns(rows, count, shape_, panels);
    return panels;
  }
  static constexpr int64_t kScoreStride = kKeyBlock + kLanes;

  const AttentionBlock& block_;
  int64_t head_;
  KeyRows keys_;
  HeadRows q_;
  HeadRows k_;
  HeadRows v_;
  HeadShape shape_;
  float scale_;
};

class HeadForward : public Head {
 public:
  HeadForward(const AttentionInput& input, const AttentionBlock& block, int64_t head,
              const AttentionOutput& output)
      : Head(input, block, head),
        out_(output.out, input.heads),
        log_sum_(output.log_sum.mutable_data_ptr<float>() + head * output.log_sum.size(1) +
                 block.first_query) {}

  void run() {
    // Panels of a key block start at a multiple of 32 keys.
    const float* rows = stage_keys(k_, 0, keys_.count(), kKeys);
    key_columns_ = columns(rows, keys_.count(), kKeyColumns);
    values_ = stage_keys(v_, 0, keys_.count(), kValues);
    for (int64_t first = 0; first < block_.num_queries; first += kQueryBlock)
      mix(first, std::min(kQueryBlock, block_.num_queries - first));
  }

 private:
  void mix(int64_t first, int64_t count) const {
    const float* queries = stage_queries(q_, first, count, kQueries);
    float* scores = scratch(kScores, kQueryBlock * kScoreStride);
    float* mixed = scratch(kMixed, kQueryBlock * shape_.stride);
    std::fill(mixed, mixed + count * shape_.stride, 0.0F);
    std::array<Running, kQueryBlock> running{};
    for (int64_t key = 0; key < keys_.count(); key += kKeyBlock) {
      const int64_t num_keys = std::min(kKeyBlock, keys_.count() - key);
      score(queries, count, key_columns_ + key * shape_.size, num_keys, shape_, scores, kScoreStride);
      for (int64_t i = 0; i < count; ++i)
        soften(scores + i * kScoreStride, num_keys, scale_, running[static_cast<size_t>(i)],
               mixed + i * shape_.stride, shape_.width);
      multiply_rows(count, num_keys, {scores, kScoreStride, 1},
                    {values_ + key * shape_.stride, shape_.stride}, shape_.width, mixed, shape_.stride,
                    key > 0);
    }
    for (int64_t i = 0; i < count; ++i) {
      const Running& one = running[static_cast<size_t>(i)];
      out_.write(block_.first_query + first + i, head_, mixed + i * shape_.stride,
                 one.sum > 0.0F ? 1.0F / one.sum : 0.0F);
      log_sum_[first + i] = one.largest * scale_ + std::log(one.sum);
    }
  }

  HeadRows out_;
  float* log_sum_;
  const float* key_columns_ = nullptr;
  const float* values_ = nullptr;
};

class HeadBackward : public Head {
 public:
  HeadBackward(const AttentionInput& input, const AttentionBlock& block, int64_t head,
               const AttentionOutput& output, const at::Tensor& gradient, const AttentionGradients& of)
      : Head(input, block, head),
        out_(output.out, input.heads),
        upstream_(gradient, input.heads),
        of_q_(of.q, input.heads),
        of_k_(of.k, input.heads),
        of_v_(of.v, input.heads),
        log_sum_(output.log_sum.const_data_ptr<float>() + head * output.log_sum.size(1) + block.first_query) {
  }

  void run() {
    const int64_t queries = block_.num_queries;
    stage_deltas();
    queries_rows_ = stage_queries(q_, 0, queries, kQueries);
    of_queries_ = scratch(kOfQueries, queries * shape_.stride);
    std::fill(of_queries_, of_queries_ + queries * shape_.stride, 0.0F);
    for (int64_t key = 0; key < keys_.count(); key += kKeyBlock)
      run_keys(key, std::min(kKeyBlock, keys_.count() - key));
    for (int64_t i = 0; i < queries; ++i)
      of_q_.write(block_.first_query + i, head_, of_queries_ + i * shape_.stride, 1.0F);
  }

 private:
  /// Sum of out times its gradient for each query.
  void stage_deltas() {
    const int64_t queries = block_.num_queries;
    upstream_rows_ = stage_queries(upstream_, 0, queries, kUpstream);
    deltas_.resize(static_cast<size_t>(queries));
    float* row = scratch(kMixed, kQueryBlock * shape_.stride);
    for (int64_t i = 0; i < queries; ++i) {
      out_.read(block_.first_query + i, head_, row);
      deltas_[static_cast<size_t>(i)] = dot(row, upstream_rows_ + i * shape_.stride, shape_.size);
    }
  }

  void run_keys(int64_t first, int64_t count) const {
    const float* keys = stage_keys(k_, first, count, kKeys);
    const float* values = stage_keys(v_, first, count, kValues);
    const float* key_columns = columns(keys, count, kKeyColumns);
    const float* value_columns = columns(values, count, kValueColumns);
    float* scores = scratch(kScores, kQueryBlock * kScoreStride);
    float* pairs = scratch(kPairs, kQueryBlock * kScoreStride);
    float* of_keys = scratch(kOfKeys, kKeyBlock * shape_.stride);
    float* of_values = scratch(kOfValues, kKeyBlock * shape_.stride);
    for (int64_t query = 0; query < block_.num_queries; query += kQueryBlock) {
      const int64_t num_queries = std::min(kQueryBlock, block_.num_queries - query);
      const float* q = queries_rows_ + query * shape_.stride;
      const float* up = upstream_rows_ + query * shape_.stride;
      score(q, num_queries, key_columns, count, shape_, scores, kScoreStride);
      score(up, num_queries, value_columns, count, shape_, pairs, kScoreStride);
      for (int64_t i = 0; i < num_queries; ++i)
        soften_backward(scores + i * kScoreStride, pairs + i * kScoreStride, count, scale_,
                        log_sum_[query + i], deltas_[static_cast<size_t>(query + i)]);
      multiply_rows(count, num_queries, {scores, 1, kScoreStride}, {up, shape_.stride}, shape_.width,
                    of_values, shape_.stride, query > 0);
      multiply_rows(count, num_queries, {pairs, 1, kScoreStride}, {q, shape_.stride}, shape_.width, of_keys,
                    shape_.stride, query > 0);
      multiply_rows(num_queries, count, {pairs, kScoreStride, 1}, {keys, shape_.stride}, shape_.width,
                    of_queries_ + query * shape_.stride, shape_.stride, true);
    }
    if (block_.num_queries == 0) {
      std::fill(of_keys, of_keys + count * shape_.stride, 0.0F);
      std::fill(of_values, of_values + count * shape_.stride, 0.0F);
    }
    for (int64_t i = 0; i < count; ++i) {
      of_k_.write(keys_[first + i], head_, of_keys + i * shape_.stride, 1.0F);
      of_v_.write(keys_[first + i], head_, of_values + i * shape_.stride, 1.0F);
    }
  }

  HeadRows out_;
  HeadRows upstream_;
  HeadRows of_q_;
  HeadRows of_k_;
  HeadRows of_v_;
  const float* log_sum_;
  const float* queries_rows_ = nullptr;
  const float* upstream_rows_ = nullptr;
  float* of_queries_ = nullptr;
  std::vector<float> deltas_;
};

}  // namespace

AttentionOutput attention_forward(const AttentionInput& input) {
  const AttentionOutput output{
      at::empty(input.q.sizes(), input.q.options()),
      at::empty({input.heads, input.q.size(0)}, input.q.options().dtype(at::kFloat))};
  const auto blocks = static_cast<int64_t>(input.blocks.size());
  for_each_part(blocks * input.heads, [&](int64_t i) {
    const AttentionBlock& block = input.blocks[static_cast<size_t>(i / input.heads)];
    HeadForward(input, block, i % input.heads, output).run();
  });
  return output;
}

AttentionGradients attention_backward(const AttentionInput& input, const AttentionOutput& output,
                                      const at::Tensor& gradient) {
  // Keys that do not count get zeros.
  const auto fresh = [&](const at::Tensor& like) {
    return input.key_mask.defined() ? at::zeros(like.sizes(), like.options())
                                    : at::empty(like.sizes(), like.options());
  };
  const AttentionGradients of{at::empty(input.q.sizes(), input.q.options()), fresh(input.k), fresh(input.v)};
  const auto blocks = static_cast<int64_t>(input.blocks.size());
  for_each_part(blocks * input.heads, [&](int64_t i) {
    const AttentionBlock& block = input.blocks[static_cast<size_t>(i / input.heads)];
    HeadBackward(input, block, i % input.heads, output, gradient, of).run();
  });
  return of;
}

}  // namespace chiliad::ops::cpu
CHILIAD_SIMD_END
