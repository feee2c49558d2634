// How equal is the work of ranks, and how long does planning take? 20,000 made items with the sizes of the
// stamps on four ranks; 2,000,000 made samples on 8 to 1,024 (at_scale.h).
// bench_balance [SIZES.csv [SAMPLES [PART OF A CASE'S NAME [RANKS]]]]
#include <fmt/core.h>

#include <algorithm>
#include <ctime>
#include <string>

#include "bench/balance/at_scale.h"
#include "chiliad/stepplan/report.h"
#include "tests/support/synthetic_index.h"

namespace {

using namespace chiliad;

/// CPU seconds of this process: others may be at work beside it.
double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

bool print(const std::string& metric, double value, const char* unit, double target) {
  const bool ok = value <= target;
  fmt::print(R"({{"bench":"balance","metric":"{}","value":{:.5g},"unit":"{}","target":{:g},"ok":{}}})"
             "\n",
             metric, value, unit, target, ok);
  return ok;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string sizes = argc > 1 ? argv[1] : "tests/data/stepplan/stamp_sizes.csv";
  const auto index = test::synthetic_index(test::draw_sizes(test::read_sizes(sizes), 20'000, 1));
  spec::DataOptions data;
  data.batch = 64;
  const stepplan::Plan plan(index, data, 1, test::byte_tokens(index));
  bool ok = true;
  for (const double overhead : {0.3, 1.0}) {
    const stepplan::PackOptions options{4, 32, test::transformer_work(overhead)};
    const auto report = stepplan::make_report(plan, {}, 0, options);
    const std::string suffix = fmt::format("_overhead_{:.1f}", overhead);
    ok &= print("mean_max_over_mean" + suffix, report.balance_mean, "ratio", 1.03);
    ok &= print("worst_max_over_mean" + suffix, report.balance_worst, "ratio", 1.10);
    print("granularity_bound" + suffix, report.balance_bound_mean, "ratio", 1.10);
    print("micro_batches_a_rank" + suffix, report.slots_mean, "slots", 16);
  }
  const stepplan::PackOptions options{4, 32, test::transformer_work()};
  const int64_t steps = std::min<int64_t>(300, plan.steps_per_epoch());
  double select = 0.0;
  double pack = 0.0;
  for (int64_t step = 0; step < steps; ++step) {
    double start = cpu_seconds();
    const auto selected = plan.select(step * 7919 % plan.steps_per_epoch(), {});
    select += cpu_seconds() - start;
    start = cpu_seconds();
    const auto packed = stepplan::pack(selected, plan.buckets(), options);
    pack += cpu_seconds() - start;
  }
  const auto count = static_cast<double>(steps);
  ok &= print("select_random_step", 1e3 * select / count, "ms", 1.0);
  ok &= print("pack", 1e3 * pack / count, "ms", 1.0);
  const int64_t samples = argc > 2 ? std::stoll(argv[2]) : 2'000'000;
  ok &= bench::bench_at_scale(samples, argc > 3 ? argv[3] : "", argc > 4 ? std::stoi(argv[4]) : 0);
  return ok ? 0 : 1;
}
