// How long do 256 ranks take to make all groups of a mesh with all dimensions? Ranks are threads.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "chiliad/parallel/mesh.h"

namespace {

using namespace chiliad;
using Seconds = std::chrono::duration<double>;

constexpr parallel::MeshShape kShape{.dp_replicate = 4, .dp_shard = 4, .tp = 4, .cp = 2, .pp = 2};
constexpr int64_t kRoom = 64 << 10;
constexpr parallel::GroupBytes kEach{kRoom, 0};
constexpr parallel::MeshBytes kBytes{kEach, kEach, kEach, kEach, kEach, kEach, kEach, kEach};

/// Until the last rank has its groups, and until the last has agreed with all others once.
struct Times {
  double groups = 0.0;
  double agreement = 0.0;
};

Times run_once() {
  const auto start = std::chrono::steady_clock::now();
  const auto passed = [start] { return Seconds(std::chrono::steady_clock::now() - start).count(); };
  const auto count = static_cast<size_t>(kShape.size());
  const auto meetings = comm::meet_in_process(kShape.size(), std::chrono::seconds(60));
  std::vector<Times> times(count);
  {
    std::vector<std::jthread> threads;
    for (size_t rank = 0; rank < count; ++rank) {
      threads.emplace_back([&, rank] {
        parallel::Mesh mesh(*meetings[rank], kShape, kBytes);
        times[rank].groups = passed();
        static_cast<void>(comm::sum_over_ranks(mesh.world(), std::vector<double>{1.0}));
        times[rank].agreement = passed();
        mesh.close();
      });
    }
  }
  Times last;
  for (const auto& one : times) {
    last.groups = std::max(last.groups, one.groups);
    last.agreement = std::max(last.agreement, one.agreement);
  }
  return last;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

bool print(const char* metric, double value) {
  constexpr double kTarget = 5.0;
  fmt::print(R"({{"bench":"mesh","metric":"{}","value":{:.4g},"unit":"s","target":{:g},"ok":{}}})"
             "\n",
             metric, value, kTarget, value <= kTarget);
  return value <= kTarget;
}

}  // namespace

int main(int argc, char** argv) {
  const int repeats = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
  std::vector<double> groups;
  std::vector<double> agreement;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const Times times = run_once();
    groups.push_back(times.groups);
    agreement.push_back(times.agreement);
    fmt::print(stderr, "{}: groups {:.3f} s, first agreement of all {:.3f} s\n", kShape.to_string(),
               times.groups, times.agreement);
  }
  bool ok = print("groups_of_256_ranks", median(groups));
  ok = print("first_agreement_of_256_ranks", median(agreement)) && ok;
  return ok ? 0 : 1;
}
