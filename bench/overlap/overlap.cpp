// One rank of a sharded run whose ranks are in network namespaces of their own (run.sh makes them). Rank 0
// prints one JSON object: the step, what it waited for the wire, what it sent, and what the program would
// take at best on such a wire.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "chiliad/base/clock.h"
#include "chiliad/comm/meeting.h"
#include "chiliad/device/tensor.h"
#include "chiliad/index/index.h"
#include "chiliad/loader/run_inputs.h"
#include "chiliad/observe/cpu_time.h"
#include "chiliad/schedule/simulate.h"
#include "chiliad/spec/run_file.h"
#include "chiliad/train/mesh_bytes.h"
#include "chiliad/train/trainer.h"

namespace {

using namespace chiliad;

constexpr int kRanks = 2;
constexpr int kWarmUp = 2;

/// Seconds of the computation of one step by layer.
class StepTimes {
 public:
  explicit StepTimes(size_t num_layers)
      : seconds_(DType::kF32, Shape{static_cast<int64_t>(3 * num_layers)}) {}

  void begin(Nanoseconds now, const schedule::Instruction& instruction) {
    end(now);
    open_ = instruction;
    since_ = now;
  }
  void end(Nanoseconds now) {
    if (open_.has_value() && kind(open_->op) >= 0) {
      const auto index = static_cast<size_t>(3 * open_->layer + kind(open_->op));
      seconds_.as<float>()[index] += static_cast<float>(to_seconds(now - since_));
    }
    open_.reset();
  }
  /// [layer][forward, backward, optimize]
  [[nodiscard]] const HostArray& seconds() const { return seconds_; }

 private:
  static int kind(schedule::Op op) {
    using schedule::Op;
    return op == Op::kForward ? 0 : op == Op::kBackward ? 1 : op == Op::kOptimize ? 2 : -1;
  }

  HostArray seconds_;
  std::optional<schedule::Instruction> open_;
  Nanoseconds since_{0};
};

/// The program's costs with this computation and a wire of `bytes_per_second` in each direction.
schedule::Costs costs_of(const float* seconds, const std::vector<int64_t>& shard_bytes,
                         double bytes_per_second) {
  schedule::Costs costs;
  for (const int64_t bytes : shard_bytes) {
    costs.forward.push_back({seconds[0]});
    costs.backward.push_back({seconds[1]});
    costs.optimize.push_back(seconds[2]);
    const double wire = static_cast<double>(bytes) / bytes_per_second;
    costs.unshard.push_back(wire);
    costs.reduce.push_back(wire);
    costs.reduce_replicas.push_back(0.0);
    costs.gather.push_back(0.0);
    seconds += 3;
  }
  return costs;
}

schedule::Program program_of(const spec::ParallelOptions& parallel, size_t num_layers) {
  schedule::ProgramOptions options;
  options.num_layers = static_cast<int32_t>(num_layers);
  options.num_slots = 1;
  options.sharded = true;
  options.overlap = parallel.overlap;
  options.ahead = static_cast<int32_t>(parallel.prefetch_layers);
  return schedule::make_program(options);
}

/// Of every rank, in rank order.
HostArray gather_times(parallel::Mesh& mesh, const HostArray& own) {
  HostArray all(DType::kF32, Shape{kRanks * own.shape().count()});
  mesh.world().all_gather(device::as_tensor(all), device::as_tensor(own))->wait();
  return all;
}

double sum_of(std::span<const float> seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// What the command line says.
struct Arguments {
  std::string run_file;
  int rank = 0;
  std::string store;
  std::string own;
  int64_t steps = 0;
  double megabits = 0.0;
  std::vector<std::string> settings;
};

int run(const Arguments& arguments) {
  const int rank = arguments.rank;
  const auto file = spec::read_run_file(arguments.run_file, arguments.settings);
  device::set_compute_threads(1);
  comm::ConnectOptions connect;
  connect.transport = comm::Transport::kGloo;
  connect.rank = rank;
  connect.size = kRanks;
  connect.host = arguments.store;
  connect.own_host = arguments.own;
  connect.port = 29511;
  const parallel::MeshShape shape{.dp_shard = kRanks};
  const auto meeting = comm::meet(connect);
  parallel::Mesh mesh(*meeting, shape, train::mesh_bytes(file, shape));
  const auto index = loader::open_index(file.data);
  const SystemClock clock;
  train::TrainerSetup setup;
  setup.run = &file;
  setup.index = &index;
  setup.mesh = &mesh;
  setup.clock = &clock;
  setup.rates = spec::rates_of(file.parallel);
  train::Trainer trainer(std::move(setup));
  std::vector<int64_t> shard_bytes;
  int64_t ideal = 0;
  const size_t num_layers = trainer.shards().size();
  for (const auto& layer : trainer.shards()) {
    const auto& sizes = layer->layout().shard_sizes();
    shard_bytes.push_back(4 * *std::max_element(sizes.begin(), sizes.end()));
    // Gathered forward and (but for the last ones) backward: what I have; reduced: what the peer has.
    const bool once = shard_bytes.size() + static_cast<size_t>(file.parallel.prefetch_layers) > num_layers;
    ideal += 4 * (sizes[static_cast<size_t>(rank)] * (once ? 1 : 2) + sizes[static_cast<size_t>(1 - rank)]);
  }
  const schedule::Program program = program_of(file.parallel, num_layers);
  const double wire = arguments.megabits * 1e6 / 8;
  std::map<std::string, std::vector<double>> found;
  int64_t sent = 0;
  for (int64_t step = 0; step < arguments.steps; ++step) {
    static_cast<void>(trainer.account().close_step());
    int64_t before = 0;
    for (const auto& group : mesh.traffic()) before += group.traffic.bytes_sent;
    StepTimes times(num_layers);
    const double cpu_before = observe::process_cpu_seconds();
    int slots = 0;
    static_cast<void>(trainer.run_step(false, [&](int64_t, int32_t, const schedule::Instruction& i) {
      slots = std::max(slots, i.slot + 1);
      times.begin(clock.now(), i);
    }));
    times.end(clock.now());
    const auto account = trainer.account().close_step();
    const double cpu = observe::process_cpu_seconds() - cpu_before;
    CHILIAD_CHECK_EQ(slots, 1);
    sent = -before;
    for (const auto& group : mesh.traffic()) sent += group.traffic.bytes_sent;
    const auto all = gather_times(mesh, times.seconds());
    if (step < kWarmUp) continue;
    std::vector<schedule::Costs> ranks;
    for (size_t r = 0; r < kRanks; ++r)
      ranks.push_back(costs_of(all.as<float>().data() + r * 3 * num_layers, shard_bytes, wire));
    const auto best = schedule::simulate(program, ranks);
    found["step"].push_back(account.wall);
    found["waited"].push_back(account.seconds[static_cast<size_t>(observe::Row::kCommunication)]);
    found["ceiling"].push_back(best.seconds);
    found["ratio"].push_back(best.seconds / account.wall);
    found["compute"].push_back(best.compute);
    found["cpu_beside_compute"].push_back(
        cpu - sum_of(all.as<float>().subspan(static_cast<size_t>(rank) * 3 * num_layers, 3 * num_layers)));
    found["communication"].push_back(best.communication);
  }
  if (rank == 0) {
    fmt::print("{{\"sent\":{},\"ideal_sent\":{},\"layers\":{}", sent, ideal, num_layers);
    for (const auto& [name, values] : found) fmt::print(",\"{}\":{:.4f}", name, median(values));
    fmt::print("}}\n");
  }
  mesh.close();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 7) {
    fmt::print(stderr,
               "usage: bench_overlap RUN.yaml RANK STORE_HOST OWN_HOST STEPS MEGABITS [KEY=VALUE...]\n");
    return 2;
  }
  try {
    return run({argv[1],
                std::atoi(argv[2]),
                argv[3],
                argv[4],
                std::atoll(argv[5]),
                std::atof(argv[6]),
                {argv + 7, argv + argc}});
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_overlap: {}\n", error.what());
    return 1;
  }
}
