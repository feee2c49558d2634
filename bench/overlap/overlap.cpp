// One rank of a sharded run whose ranks are in network namespaces of their own (run.sh makes them). Rank 0
// prints one JSON object: the step, what it waited for the wire, what it sent, and what the program would
// take at best on such a wire.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "chiliad/base/clock.h"
#include "chiliad/comm/meeting.h"
#include "chiliad/device/tensor.h"
#include "chiliad/index/index.h"
#include "chiliad/schedule/simulate.h"
#include "chiliad/spec/run_file.h"
#include "chiliad/train/mesh_bytes.h"
#include "chiliad/train/trainer.h"

namespace {

using namespace chiliad;

constexpr int kRanks = 2;
constexpr int kWarmUp = 2;

/// Seconds of each instruction kind and layer, medians over steps.
class InstructionTimes {
 public:
  void begin(Nanoseconds now, const schedule::Instruction& instruction) {
    end(now);
    open_ = instruction;
    since_ = now;
  }
  void end(Nanoseconds now) {
    if (open_.has_value()) times_[{open_->op, open_->layer}].push_back(to_seconds(now - since_));
    open_.reset();
  }
  [[nodiscard]] double of(schedule::Op op, int32_t layer) const {
    const auto found = times_.find({op, layer});
    if (found == times_.end()) return 0.0;
    auto values = found->second;
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  }

 private:
  std::optional<schedule::Instruction> open_;
  Nanoseconds since_{0};
  std::map<std::pair<schedule::Op, int32_t>, std::vector<double>> times_;
};

/// The program with this rank's computation as measured and a wire of `bytes_per_second` in each direction.
schedule::Prediction ceiling(const InstructionTimes& times, const std::vector<int64_t>& shard_bytes,
                             bool overlap, double bytes_per_second) {
  using schedule::Op;
  schedule::ProgramOptions options;
  options.num_layers = static_cast<int32_t>(shard_bytes.size());
  options.num_slots = 1;
  options.sharded = true;
  options.overlap = overlap;
  schedule::Costs costs;
  for (int32_t layer = 0; layer < options.num_layers; ++layer) {
    costs.forward.push_back({times.of(Op::kForward, layer)});
    costs.backward.push_back({times.of(Op::kBackward, layer)});
    costs.optimize.push_back(times.of(Op::kOptimize, layer));
    const double wire = static_cast<double>(shard_bytes[static_cast<size_t>(layer)]) / bytes_per_second;
    costs.unshard.push_back(wire);
    costs.reduce.push_back(wire);
    costs.reduce_replicas.push_back(0.0);
    costs.gather.push_back(0.0);
  }
  return schedule::simulate(schedule::make_program(options), costs);
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
  const auto index = index::Index::open(file.data.index);
  const SystemClock clock;
  train::TrainerSetup setup;
  setup.run = &file;
  setup.index = &index;
  setup.mesh = &mesh;
  setup.clock = &clock;
  setup.rates = spec::rates_of(file.parallel);
  train::Trainer trainer(std::move(setup));
  InstructionTimes times;
  std::vector<double> walls;
  double waited = 0.0;
  int64_t sent = 0;
  int slots = 0;
  for (int64_t step = 0; step < arguments.steps; ++step) {
    const bool measured = step >= kWarmUp;
    static_cast<void>(trainer.account().close_step());
    int64_t before = 0;
    for (const auto& group : mesh.traffic()) before += group.traffic.bytes_sent;
    static_cast<void>(trainer.run_step(false, [&](int64_t, int32_t, const schedule::Instruction& i) {
      slots = std::max(slots, i.slot + 1);
      if (measured) times.begin(clock.now(), i);
    }));
    times.end(clock.now());
    const auto account = trainer.account().close_step();
    if (!measured) continue;
    walls.push_back(account.wall);
    waited += account.seconds[static_cast<size_t>(observe::Row::kCommunication)];
    sent = -before;
    for (const auto& group : mesh.traffic()) sent += group.traffic.bytes_sent;
  }
  std::vector<int64_t> shard_bytes;
  int64_t ideal = 0;
  for (const auto& layer : trainer.shards()) {
    const auto& sizes = layer->layout().shard_sizes();
    shard_bytes.push_back(4 * *std::max_element(sizes.begin(), sizes.end()));
    // Gathered forward and (but for the last) backward: what I have; reduced: what the peer has.
    const bool last = shard_bytes.size() == trainer.shards().size();
    ideal += 4 * (sizes[static_cast<size_t>(rank)] * (last ? 1 : 2) + sizes[static_cast<size_t>(1 - rank)]);
  }
  const auto best = ceiling(times, shard_bytes, file.parallel.overlap, arguments.megabits * 1e6 / 8);
  std::sort(walls.begin(), walls.end());
  if (rank == 0) {
    fmt::print(
        "{{\"step\":{:.4f},\"waited\":{:.4f},\"sent\":{},\"ideal_sent\":{},\"layers\":{},\"slots\":{},"
        "\"ceiling\":{:.4f},\"compute\":{:.4f},\"communication\":{:.4f}}}\n",
        walls[walls.size() / 2], waited / static_cast<double>(walls.size()), sent, ideal, shard_bytes.size(),
        slots, best.seconds, best.compute, best.communication);
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
