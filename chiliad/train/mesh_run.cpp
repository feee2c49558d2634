#include "chiliad/train/mesh_run.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>

#include "chiliad/base/clock.h"
#include "chiliad/base/error.h"
#include "chiliad/comm/meeting.h"
#include "chiliad/device/memory_meter.h"
#include "chiliad/device/tensor.h"
#include "chiliad/train/initial_weights.h"
#include "chiliad/train/mesh_bytes.h"
#include "chiliad/train/trainer.h"

namespace chiliad::train {
namespace {

/// What the ranks fill together.
struct SharedGradients {
  std::mutex mutex;
  std::map<std::string, std::vector<float>> values;  // guarded by mutex
};

/// What a rank has for itself.
struct RankRun {
  MeshRun run;
  std::vector<double> work;  // [step], predicted seconds
  std::exception_ptr error;
};

/// Adds the values of a box to a whole parameter of that shape.
void add_box(const Shape& shape, const Box& box, const float* values, double scale, std::vector<float>& out) {
  const int64_t columns = shape.rank() < 2 ? 1 : shape.count() / shape[0];
  const int64_t rows = shape.rank() == 0 ? 1 : box.size[0];
  const int64_t width = shape.rank() < 2 ? 1 : box.count() / box.size[0];
  const int64_t first_row = shape.rank() == 0 ? 0 : box.offset[0];
  const int64_t first_column = shape.rank() == 2 ? box.offset[1] : 0;
  for (int64_t row = 0; row < rows; ++row) {
    float* to = out.data() + (first_row + row) * columns + first_column;
    for (int64_t i = 0; i < width; ++i) to[i] += static_cast<float>(*values++ * scale);
  }
}

/// Adds what this rank owns. Boxes of ranks are disjoint: the order of ranks does not matter, and a box that
/// two have, or nobody, shows as a difference.
void add_gradients(Trainer& trainer, const parallel::Mesh& mesh, double scale, SharedGradients& out) {
  const std::scoped_lock lock(out.mutex);
  for (auto& shard : trainer.shards()) {
    if (!shard->trained()) continue;
    for (const auto& param : shard->decl().params) {
      out.values.try_emplace(param.name, static_cast<size_t>(param.shape.count()), 0.0F);
    }
    for (const auto& piece : shard->layout().owned_pieces()) {
      if (piece.replicated && mesh.place().tp > 0) continue;
      add_box(piece.param->shape, piece.box, shard->owned_gradients() + piece.offset, scale,
              out.values.at(piece.param->name));
    }
  }
}

void run_rank(const spec::RunFile& file, const index::Index& index, int64_t num_steps, parallel::Mesh& mesh,
              const MeshRunOptions& options, RankRun& out, SharedGradients& gradients) {
  const SystemClock clock;
  device::MemoryMeter meter;
  TrainerSetup setup;
  setup.run = &file;
  setup.index = &index;
  setup.mesh = &mesh;
  setup.clock = &clock;
  setup.rates = spec::rates_of(file.parallel);
  Trainer trainer(std::move(setup));
  if (options.draw_zeros && file.model.weights.empty()) {
    for (auto& shard : trainer.shards()) set_initial_weights(*shard, file.run.seed, spec::Init::kNormal002);
  }
  meter.reset_peak();
  for (int64_t step = 0; step < num_steps; ++step) {
    const auto report = trainer.run_step(false, {});
    const auto& agreed = report.agreement;
    out.run.losses.push_back(agreed.loss);
    out.run.grad_norms.push_back(agreed.grad_norm);
    out.run.items.push_back(report.items.hex());
    out.work.push_back(report.predicted_seconds);
    if (step == 0) add_gradients(trainer, mesh, agreed.planned_weight / agreed.actual_weight, gradients);
    if (options.watch && mesh.rank() == 0) options.watch(step + 1);
  }
  out.run.state_bytes = trainer.state_bytes();
  out.run.peak_bytes = meter.peak_bytes() + mesh.shared_bytes();
}

/// Ranks share this machine's cores here, so that they wait longer for each other than a job's do.
Nanoseconds deadline(const spec::RunFile& file, int num_ranks) {
  const double cores = std::max(1U, std::thread::hardware_concurrency());
  const double share = std::max(1.0, num_ranks / cores);
  return std::chrono::duration_cast<Nanoseconds>(
      std::chrono::duration<double>(file.parallel.timeout_s * share));
}

/// A rank that lost its peers is rarely the one where it went wrong.
void rethrow_cause(const std::vector<RankRun>& ranks) {
  std::exception_ptr lost;
  for (const auto& rank : ranks) {
    if (rank.error == nullptr) continue;
    try {
      std::rethrow_exception(rank.error);
    } catch (const PeerLost&) {
      lost = rank.error;
    }
  }
  if (lost != nullptr) std::rethrow_exception(lost);
}

int64_t count_unequal_steps(const std::vector<RankRun>& ranks, int64_t num_steps) {
  int64_t count = 0;
  for (size_t step = 0; step < static_cast<size_t>(num_steps); ++step) {
    const double first = ranks.front().work[step];
    count += std::any_of(ranks.begin(), ranks.end(), [&](const auto& r) { return r.work[step] != first; });
  }
  return count;
}

}  // namespace

MeshRun run_mesh(const spec::RunFile& file, const index::Index& index, const parallel::MeshShape& shape,
                 int64_t num_steps, const MeshRunOptions& options) {
  const auto num_ranks = static_cast<size_t>(shape.size());
  const auto meetings = comm::meet_in_process(shape.size(), deadline(file, shape.size()));
  const auto bytes = mesh_bytes(file, shape);
  std::vector<RankRun> ranks(num_ranks);
  SharedGradients gradients;
  {
    std::vector<std::jthread> threads;
    for (size_t rank = 0; rank < num_ranks; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          device::set_compute_threads(1);
          parallel::Mesh mesh(*meetings[rank], shape, bytes);
          run_rank(file, index, num_steps, mesh, options, ranks[rank], gradients);
          mesh.close();
        } catch (...) {
          ranks[rank].error = std::current_exception();
        }
      });
    }
  }
  rethrow_cause(ranks);
  MeshRun all = ranks.front().run;
  all.gradients = std::move(gradients.values);
  for (const auto& rank : ranks) {
    all.state_bytes = std::max(all.state_bytes, rank.run.state_bytes);
    all.peak_bytes = std::max(all.peak_bytes, rank.run.peak_bytes);
  }
  all.unequal_steps = count_unequal_steps(ranks, num_steps);
  return all;
}

GradientDifference compare_gradients(const MeshRun& want, const MeshRun& got) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  GradientDifference worst;
  double largest = 0.0;
  for (const auto& [name, values] : want.gradients) {
    const auto& other = got.gradients.at(name);
    CHILIAD_CHECK_EQ(other.size(), values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      const double value = values[i];
      double error = std::abs(value - static_cast<double>(other[i]));
      if (std::isnan(error)) error = kInfinite;
      largest = std::max(largest, std::abs(value));
      if (error <= worst.error) continue;
      worst = {error, name};
    }
  }
  if (worst.error > 0.0) worst.error = std::isfinite(largest) ? worst.error / largest : kInfinite;
  return worst;
}

}  // namespace chiliad::train
