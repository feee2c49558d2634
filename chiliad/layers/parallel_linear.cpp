#include "chiliad/layers/parallel_linear.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "chiliad/layers/rank_sum.h"
#include "chiliad/layers/saved_group.h"
#include "chiliad/ops/linear.h"
#include "chiliad/spec/tensor_shard.h"

namespace chiliad::layers {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

/// Rows [begin, begin + count) of the sequence.
struct Run {
  int64_t begin = 0;
  int64_t count = 0;
};

/// How `length` rows of `batch` sequences are cut into chunks. A chunk has a run of every rank's rows. In
/// chunk order a chunk's rows lie together, run after run. Equal on all ranks.
class RowChunks {
 public:
  RowChunks(int64_t length, int64_t batch, int num_ranks) {
    const auto count = static_cast<int>(spec::num_row_chunks(length, batch, num_ranks));
    for (int chunk = 0; chunk < count; ++chunk) {
      std::vector<Run> runs;
      for (int rank = 0; rank < num_ranks; ++rank) {
        const auto [first, last] = spec::even_part(length, rank, num_ranks);
        const auto [begin, end] = spec::even_part(last - first, chunk, count);
        runs.push_back({first + begin, end - begin});
      }
      chunks_.push_back(std::move(runs));
    }
  }

  [[nodiscard]] size_t size() const { return chunks_.size(); }
  [[nodiscard]] const std::vector<Run>& runs(size_t chunk) const { return chunks_[chunk]; }
  [[nodiscard]] int64_t num_rows(size_t chunk) const {
    int64_t sum = 0;
    for (const auto& run : chunks_[chunk]) sum += run.count;
    return sum;
  }
  /// Elements of each rank's run, of `row` elements a row.
  [[nodiscard]] std::vector<int64_t> counts(size_t chunk, int64_t row) const {
    std::vector<int64_t> counts;
    for (const auto& run : chunks_[chunk]) counts.push_back(run.count * row);
    return counts;
  }

 private:
  std::vector<std::vector<Run>> chunks_;
};

/// Rows of [B, S, C] in chunk order, [S, B, C].
at::Tensor to_chunk_order(const at::Tensor& x, const RowChunks& chunks) {
  if (chunks.size() == 1) return x.transpose(0, 1).contiguous();
  at::Tensor out = at::empty({x.size(1), x.size(0), x.size(2)}, x.options());
  int64_t next = 0;
  for (size_t chunk = 0; chunk < chunks.size(); ++chunk) {
    for (const auto& run : chunks.runs(chunk)) {
      out.narrow(0, next, run.count).copy_(x.narrow(1, run.begin, run.count).transpose(0, 1));
      next += run.count;
    }
  }
  return out;
}

/// The other way.
at::Tensor from_chunk_order(const at::Tensor& x, const RowChunks& chunks) {
  if (chunks.size() == 1) return x.transpose(0, 1).contiguous();
  at::Tensor out = at::empty({x.size(1), x.size(0), x.size(2)}, x.options());
  int64_t next = 0;
  for (size_t chunk = 0; chunk < chunks.size(); ++chunk) {
    for (const auto& run : chunks.runs(chunk)) {
      out.narrow(1, run.begin, run.count).copy_(x.narrow(0, next, run.count).transpose(0, 1));
      next += run.count;
    }
  }
  return out;
}

/// [rows, B, C] as a matrix [rows * B, C].
at::Tensor matrix(const at::Tensor& rows) {
  return rows.view({rows.size(0) * rows.size(1), rows.size(2)});
}

/// Gathers of all chunks under way. whole: [S, B, C] in chunk order; own: [S_rank, B, C].
class ChunkGather {
 public:
  ChunkGather(comm::Group& group, const RowChunks& chunks, const at::Tensor& own, const at::Tensor& whole)
      : chunks_(chunks), whole_(whole) {
    const int64_t row = whole.size(1) * whole.size(2);
    int64_t begin = 0;
    int64_t own_begin = 0;
    for (size_t chunk = 0; chunk < chunks.size(); ++chunk) {
      const int64_t rows = chunks.num_rows(chunk);
      const int64_t own_rows = chunks.runs(chunk)[static_cast<size_t>(group.rank())].count;
      works_.push_back(group.all_gather_parts(whole.narrow(0, begin, rows).view({-1}),
                                              chunks.counts(chunk, row),
                                              own.narrow(0, own_begin, own_rows).view({-1})));
      begins_.push_back(begin);
      begin += rows;
      own_begin += own_rows;
    }
  }

  /// The rows of a chunk, [rows, B, C], once they are there.
  at::Tensor wait(size_t chunk) {
    works_[chunk]->wait();
    return whole_.narrow(0, begins_[chunk], chunks_.num_rows(chunk));
  }
  [[nodiscard]] int64_t begin(size_t chunk) const { return begins_[chunk]; }

 private:
  const RowChunks& chunks_;
  at::Tensor whole_;
  std::vector<int64_t> begins_;
  std::vector<std::unique_ptr<comm::Work>> works_;
};

/// Partial rows of all ranks on their way to those whose rows they are, chunk by chunk.
class ChunkScatter {
 public:
  ChunkScatter(comm::Group& group, const RowChunks& chunks, at::IntArrayRef row)
      : group_(group), chunks_(chunks), row_(row.vec()) {}

  /// partial: [rows of the chunk, B, D].
  void start(size_t chunk, const at::Tensor& partial) {
    const int64_t row = row_[0] * row_[1];
    const auto counts = chunks_.counts(chunk, row);
    const int64_t mine = counts[static_cast<size_t>(group_.rank())];
    at::Tensor received = at::empty({mine * group_.size()}, partial.options());
    const std::vector<int64_t> out_counts(counts.size(), mine);
    auto work = group_.all_to_all(received, out_counts, partial.view({-1}), counts);
    pending_.push_back({std::move(work), partial, received});
  }

  /// This rank's rows, [B, S_rank, D]: sums in rank order, fp32 or wider.
  at::Tensor finish() {
    std::vector<at::Tensor> sums;
    for (auto& one : pending_) {
      one.work->wait();
      one.partial.reset();
      sums.push_back(sum(one.received));
      one.received.reset();
    }
    const at::Tensor rows = sums.size() == 1 ? sums[0] : at::cat(sums);
    return rows.transpose(0, 1).contiguous();
  }

 private:
  struct Pending {
    std::unique_ptr<comm::Work> work;
    at::Tensor partial;  // untouched until the work is done
    at::Tensor received;
  };

  [[nodiscard]] at::Tensor sum(const at::Tensor& received) const {
    const int64_t mine = received.numel() / group_.size();
    const std::vector<int64_t> sizes = {mine / (row_[0] * row_[1]), row_[0], row_[1]};
    if (mine == 0) return received.view(sizes);
    return sum_of_ranks(received, group_.size()).view(sizes);
  }

  comm::Group& group_;
  const RowChunks& chunks_;
  std::vector<int64_t> row_;  // B, D
  std::vector<Pending> pending_;
};

/// Products of the rows of all ranks, as they come. own: [S_rank, B, C].   returns: [S, B, D] in chunk order,
/// and the rows, [S, B, C].
std::pair<at::Tensor, at::Tensor> gathered_product(comm::Group& group, const RowChunks& chunks,
                                                   const at::Tensor& own, int64_t length,
                                                   const at::Tensor& weight,
                                                   const std::optional<at::Tensor>& bias) {
  const at::Tensor whole = at::empty({length, own.size(1), own.size(2)}, own.options());
  const at::Tensor out = at::empty({length, own.size(1), weight.size(1)}, own.options());
  ChunkGather gather(group, chunks, own, whole);
  for (size_t chunk = 0; chunk < chunks.size(); ++chunk) {
    const at::Tensor rows = gather.wait(chunk);
    at::Tensor to = matrix(out.narrow(0, gather.begin(chunk), rows.size(0)));
    if (bias.has_value()) {
      at::addmm_out(to, *bias, matrix(rows), weight);
    } else {
      at::mm_out(to, matrix(rows), weight);
    }
  }
  return {out, whole};
}

struct GatherLinear : public torch::autograd::Function<GatherLinear> {
  static variable_list forward(AutogradContext* context, const Variable& x, const Variable& weight,
                               const std::optional<Variable>& bias, int64_t handle, int64_t length,
                               bool want_rows) {
    context->saved_data["group"] = handle;
    context->saved_data["length"] = length;
    context->saved_data["has_bias"] = bias.has_value();
    context->saved_data["in_order"] = want_rows;
    comm::Group& group = group_of(context);
    const RowChunks chunks(length, x.size(0), group.size());
    auto [out, whole] =
        gathered_product(group, chunks, x.transpose(0, 1).contiguous(), length, weight.t(), bias);
    variable_list results = {from_chunk_order(out, chunks)};
    if (want_rows) results.push_back(from_chunk_order(whole, chunks));
    // Further layers keep the rows as they are: one copy is enough.
    const at::Tensor kept = want_rows ? results[1] : whole;
    context->save_for_backward({weight.requires_grad() ? kept : at::Tensor(), weight});
    return results;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& weight = saved[1];
    comm::Group& group = group_of(context);
    const int64_t items = gradients[0].size(0);
    const RowChunks chunks(context->saved_data["length"].toInt(), items, group.size());
    const at::Tensor upstream = to_chunk_order(gradients[0], chunks);
    const bool has_rows = gradients.size() > 1 && gradients[1].defined();
    const at::Tensor of_rows = has_rows ? to_chunk_order(gradients[1], chunks) : at::Tensor();
    ChunkScatter scatter(group, chunks, {items, weight.size(1)});
    int64_t begin = 0;
    for (size_t chunk = 0; chunk < chunks.size(); ++chunk) {
      const int64_t rows = chunks.num_rows(chunk);
      const at::Tensor part = matrix(upstream.narrow(0, begin, rows));
      const at::Tensor partial =
          has_rows ? at::addmm(matrix(of_rows.narrow(0, begin, rows)), part, weight) : at::mm(part, weight);
      scatter.start(chunk, partial.view({rows, items, weight.size(1)}));
      begin += rows;
    }
    at::Tensor of_weight;
    at::Tensor of_bias;
    if (saved[0].defined()) {
      const bool in_order = context->saved_data["in_order"].toBool();
      const at::Tensor whole = in_order ? to_chunk_order(saved[0], chunks) : saved[0];
      of_weight = at::mm(matrix(upstream).t(), matrix(whole));
      if (context->saved_data["has_bias"].toBool()) of_bias = matrix(upstream).sum(0);
    }
    return {scatter.finish(), of_weight, of_bias, {}, {}, {}};
  }
};

struct LinearScatter : public torch::autograd::Function<LinearScatter> {
  static Variable forward(AutogradContext* context, const Variable& x, const Variable& weight,
                          int64_t handle) {
    context->saved_data["group"] = handle;
    context->saved_data["length"] = x.size(1);
    comm::Group& group = group_of(context);
    const RowChunks chunks(x.size(1), x.size(0), group.size());
    const at::Tensor whole = to_chunk_order(x, chunks);
    ChunkScatter scatter(group, chunks, {x.size(0), weight.size(0)});
    int64_t begin = 0;
    for (size_t chunk = 0; chunk < chunks.size(); ++chunk) {
      const int64_t rows = chunks.num_rows(chunk);
      const at::Tensor partial = at::mm(matrix(whole.narrow(0, begin, rows)), weight.t());
      scatter.start(chunk, partial.view({rows, x.size(0), weight.size(0)}));
      begin += rows;
    }
    context->save_for_backward({weight.requires_grad() ? x : at::Tensor(), weight});
    return scatter.finish();
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& weight = saved[1];
    comm::Group& group = group_of(context);
    const int64_t length = context->saved_data["length"].toInt();
    const RowChunks chunks(length, gradients[0].size(0), group.size());
    auto [of_x, upstream] = gathered_product(group, chunks, gradients[0].transpose(0, 1).contiguous(), length,
                                             weight, std::nullopt);
    at::Tensor of_weight;
    if (saved[0].defined())
      of_weight = at::mm(matrix(upstream).t(), matrix(to_chunk_order(saved[0], chunks)));
    upstream.reset();
    return {from_chunk_order(of_x, chunks), of_weight, {}};
  }
};

}  // namespace

GatheredLinear gather_linear(const TensorParallel& ranks, const at::Tensor& x, const at::Tensor& weight,
                             const at::Tensor& bias, int64_t length, bool want_rows) {
  if (ranks.size() == 1) return {ops::linear(x, {weight, bias}), x};
  const auto given = bias.defined() ? std::optional(bias) : std::nullopt;
  const auto results = GatherLinear::apply(x, weight, given, saved_group(ranks), length, want_rows);
  return {results[0], want_rows ? results[1] : at::Tensor()};
}

at::Tensor linear_scatter(const TensorParallel& ranks, const at::Tensor& x, const at::Tensor& weight) {
  if (ranks.size() == 1) return ops::linear(x, {weight, {}});
  return LinearScatter::apply(x, weight, saved_group(ranks));
}

}  // namespace chiliad::layers
