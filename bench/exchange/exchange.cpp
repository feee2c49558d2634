// The bare collectives of a sharded step: two ranks over TCP loopback gather every layer forward, and every
// layer but the last backward, and reduce every layer's gradients; one call after the other, nothing beside
// them. Prints seconds and CPU seconds of rank 0 for one step, medians.
#include <ATen/ATen.h>
#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "chiliad/comm/meeting.h"
#include "chiliad/device/tensor.h"
#include "chiliad/observe/cpu_time.h"
#include "chiliad/parallel/layer_layout.h"
#include "chiliad/spec/layer_table.h"
#include "chiliad/spec/run_file.h"
#include "chiliad/train/mesh_bytes.h"

namespace {

using namespace chiliad;

constexpr int kRanks = 2;
constexpr int kWarmUp = 2;
constexpr int kPort = 29541;

double wall_seconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Whole parameters, whole gradients, and a shard's sum, of one layer.
struct Buffers {
  std::vector<int64_t> counts;
  at::Tensor whole;
  at::Tensor gradients;
  at::Tensor sum;
};

std::vector<Buffers> make_buffers(const spec::RunFile& file, const parallel::MeshShape& shape, int rank) {
  const at::ScalarType type = device::compute_type(file.parallel.compute);
  const auto table = spec::make_layer_table(file.model);
  std::vector<Buffers> layers;
  for (const auto& decl : table.layers) {
    const parallel::LayerLayout layout(decl, shape, {.shard = rank});
    layers.push_back({layout.shard_sizes(), at::zeros({layout.num_params()}, type),
                      at::zeros({layout.num_params()}, type), at::zeros({layout.shard_size()}, at::kFloat)});
  }
  return layers;
}

void gather(parallel::Mesh& mesh, Buffers& layer) {
  const int rank = mesh.place().shard;
  const int64_t begin = rank == 0 ? 0 : layer.counts[0];
  const at::Tensor own = layer.whole.narrow(0, begin, layer.counts[static_cast<size_t>(rank)]);
  mesh.shard_gather().all_gather_parts(layer.whole, layer.counts, own)->wait();
}

void exchange(parallel::Mesh& mesh, std::vector<Buffers>& layers) {
  for (auto& layer : layers) gather(mesh, layer);
  for (size_t i = layers.size(); i-- > 0;) {
    if (i + 1 < layers.size()) gather(mesh, layers[i]);
    mesh.shard_reduce().reduce_scatter(layers[i].sum, layers[i].gradients, layers[i].counts, true)->wait();
  }
}

int run(int rank, const spec::RunFile& file, int steps) {
  device::set_compute_threads(1);
  comm::ConnectOptions connect;
  connect.transport = comm::Transport::kGloo;
  connect.rank = rank;
  connect.size = kRanks;
  connect.port = kPort;
  const parallel::MeshShape shape{.dp_shard = kRanks};
  const auto meeting = comm::meet(connect);
  parallel::Mesh mesh(*meeting, shape, train::mesh_bytes(file, shape));
  auto layers = make_buffers(file, shape, rank);
  std::vector<double> walls;
  std::vector<double> cpus;
  for (int step = 0; step < steps + kWarmUp; ++step) {
    static_cast<void>(comm::sum_over_ranks(mesh.world(), std::vector<double>{1.0}));
    const double wall = wall_seconds();
    const double cpu = observe::process_cpu_seconds();
    exchange(mesh, layers);
    if (step < kWarmUp) continue;
    walls.push_back(wall_seconds() - wall);
    cpus.push_back(observe::process_cpu_seconds() - cpu);
  }
  if (rank == 0) fmt::print("{{\"wall\":{:.4f},\"cpu\":{:.4f}}}\n", median(walls), median(cpus));
  mesh.close();
  return 0;
}

int run_guarded(int rank, const spec::RunFile& file, int steps) {
  try {
    return run(rank, file, steps);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_exchange: {}\n", error.what());
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: bench_exchange RUN.yaml STEPS [KEY=VALUE...]\n");
    return 2;
  }
  const auto file = spec::read_run_file(argv[1], {argv + 3, argv + argc});
  const int steps = std::max(1, std::atoi(argv[2]));
  const pid_t peer = fork();  // before any thread is made
  const int result = run_guarded(peer == 0 ? 1 : 0, file, steps);
  if (peer == 0) return result;
  int status = 0;
  waitpid(peer, &status, 0);
  return std::max(result, status == 0 ? 0 : 1);
}
