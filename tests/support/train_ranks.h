#pragma once

// Header only: it needs tensors, and the support library is free of them. For test folders with a file TORCH.

#include <ATen/Parallel.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "chiliad/base/clock.h"
#include "chiliad/comm/meeting.h"
#include "chiliad/dataset/build_index.h"
#include "chiliad/index/index.h"
#include "chiliad/train/trainer.h"

namespace chiliad::test {

/// What some steps came to, put together from all ranks.
struct RanksResult {
  std::vector<double> losses;                           ///< [step]
  std::vector<double> grad_norms;                       ///< [step]
  std::vector<std::string> items;                       ///< [step], hex digest
  std::map<std::string, std::vector<float>> gradients;  ///< of the first step, mean over its items
  int64_t unequal_steps = 0;                            ///< steps in which the ranks have different work
};

/// Adds `count` values to a box of a whole parameter of that shape.
inline void add_box(const Shape& shape, const Box& box, const float* values, double scale,
                    std::vector<float>& out) {
  const int64_t columns = shape.rank() < 2 ? 1 : shape.count() / shape[0];
  const int64_t rows = shape.rank() == 0 ? 1 : box.size[0];
  const int64_t width = shape.rank() < 2 ? 1 : box.count() / box.size[0];
  const int64_t first_row = shape.rank() == 0 ? 0 : box.offset[0];
  const int64_t first_column = shape.rank() < 2 ? 0 : box.offset[1] * (shape.rank() == 2 ? 1 : 0);
  for (int64_t row = 0; row < rows; ++row) {
    float* to = out.data() + (first_row + row) * columns + first_column;
    for (int64_t i = 0; i < width; ++i) to[i] += static_cast<float>(*values++ * scale);
  }
}

/// Puts a rank's part of the gradient into whole parameters.
inline void add_gradients(train::Trainer& trainer, const parallel::Mesh& mesh, double scale,
                          std::map<std::string, std::vector<float>>& out) {
  for (auto& shard : trainer.shards()) {
    if (!shard->trained()) continue;
    for (const auto& param : shard->decl().params) {
      out.try_emplace(param.name, static_cast<size_t>(param.shape.count()), 0.0F);
    }
    for (const auto& piece : shard->layout().owned_pieces()) {
      if (piece.replicated && mesh.place().tp > 0) continue;
      add_box(piece.param->shape, piece.box, shard->owned_gradients() + piece.offset, scale,
              out[piece.param->name]);
    }
  }
}

/// One rank's part of a run; `result` is its own.
inline void run_rank(const spec::RunFile& file, const index::Index& index, int64_t num_steps,
                     comm::Meeting& meeting, const parallel::MeshShape& shape, RanksResult& result,
                     std::vector<double>& work) {
  const SystemClock clock;
  parallel::Mesh mesh(meeting, shape, {});
  train::TrainerSetup setup;
  setup.run = &file;
  setup.index = &index;
  setup.mesh = &mesh;
  setup.clock = &clock;
  train::Trainer trainer(std::move(setup));
  for (int64_t step = 0; step < num_steps; ++step) {
    const auto report = trainer.run_step(false, {});
    result.losses.push_back(report.agreement.loss);
    result.grad_norms.push_back(report.agreement.grad_norm);
    result.items.push_back(report.items.hex());
    work.push_back(report.predicted_seconds);
    if (step > 0) continue;
    const auto& agreed = report.agreement;
    add_gradients(trainer, mesh, agreed.planned_weight / agreed.actual_weight, result.gradients);
  }
  mesh.close();
}

/// Trains `num_steps` steps with the ranks of a mesh as threads of this process.
inline RanksResult run_mesh(const spec::RunFile& file, const index::Index& index,
                            const parallel::MeshShape& shape, int64_t num_steps) {
  at::set_num_threads(1);
  const auto count = static_cast<size_t>(shape.size());
  const auto meetings = comm::meet_in_process(shape.size(), std::chrono::seconds(60));
  std::vector<RanksResult> results(count);
  std::vector<std::vector<double>> work(count);
  std::vector<std::exception_ptr> errors(count);
  {
    std::vector<std::jthread> threads;
    for (size_t rank = 0; rank < count; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          at::set_num_threads(1);
          run_rank(file, index, num_steps, *meetings[rank], shape, results[rank], work[rank]);
        } catch (...) {
          errors[rank] = std::current_exception();
        }
      });
    }
  }
  for (const auto& error : errors) {
    if (error != nullptr) std::rethrow_exception(error);
  }
  RanksResult all = results.front();
  for (size_t rank = 1; rank < results.size(); ++rank) {
    for (auto& [name, values] : all.gradients) {
      const auto& part = results[rank].gradients.at(name);
      for (size_t i = 0; i < values.size(); ++i) values[i] += part[i];
    }
  }
  for (size_t step = 0; step < static_cast<size_t>(num_steps); ++step) {
    const bool differ =
        std::any_of(work.begin(), work.end(), [&](const auto& w) { return w[step] != work[0][step]; });
    if (differ) ++all.unequal_steps;
  }
  return all;
}

/// The same for replicated data parallelism.
inline RanksResult run_ranks(const spec::RunFile& file, const index::Index& index, int num_ranks,
                             int64_t num_steps) {
  return run_mesh(file, index, {.dp_replicate = num_ranks}, num_steps);
}

/// The larger value; what is not a number is larger than any.
inline double larger(double a, double b) {
  return std::isnan(a) || a > b ? a : b;
}

/// Largest difference of two gradients over the largest value of the first.
inline double gradient_error(const RanksResult& want, const RanksResult& got) {
  double largest = 0.0;
  double error = 0.0;
  for (const auto& [name, values] : want.gradients) {
    const auto& other = got.gradients.at(name);
    for (size_t i = 0; i < values.size(); ++i) {
      largest = larger(largest, std::abs(static_cast<double>(values[i])));
      error = larger(error, std::abs(static_cast<double>(values[i]) - static_cast<double>(other[i])));
    }
  }
  return error / largest;
}

/// Largest relative difference of the losses of steps [begin, end).
inline double loss_error(const RanksResult& want, const RanksResult& got, size_t begin, size_t end) {
  double error = 0.0;
  for (size_t i = begin; i < end; ++i) {
    error = larger(error, std::abs(want.losses[i] - got.losses[i]) / std::abs(want.losses[i]));
  }
  return error;
}

/// What a run of several ranks has other than one device's, or nothing. fp32; layouts differ in the order of
/// sums alone.
inline std::string layout_difference(const RanksResult& one, const RanksResult& several) {
  if (several.items != one.items) return "items";
  const double gradients = gradient_error(one, several);
  if (!(gradients <= 2e-6)) return fmt::format("gradients of the first step by {:.2g}", gradients);
  const double losses = loss_error(one, several, 0, one.losses.size());
  if (!(losses <= 1e-5)) return fmt::format("losses by {:.2g}", losses);
  for (size_t step = 0; step < one.grad_norms.size(); ++step) {
    const double norms = std::abs(several.grad_norms[step] / one.grad_norms[step] - 1.0);
    if (!(norms <= 2e-5)) return fmt::format("gradient norm of step {} by {:.2g}", step, norms);
  }
  return {};
}

}  // namespace chiliad::test
