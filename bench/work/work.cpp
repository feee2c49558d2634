// Does the work model predict what a micro-batch costs? Rates are fitted on the shapes of `chiliad probe`;
// the error is measured on other shapes. CPU seconds of one thread, medians of interleaved repeats.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "chiliad/device/tensor.h"
#include "chiliad/train/probe.h"

int main(int argc, char** argv) {
  using namespace chiliad;
  const int repeats = argc > 1 ? std::atoi(argv[1]) : 15;
  spec::RunFile run;  // the demo's model
  run.model.text_max_tokens = 64;
  device::set_compute_threads(1);
  const auto probe = train::probe_shapes(run);
  std::vector<spec::BatchShape> all = probe;
  const std::vector<spec::BatchShape> others{{3, 16, 20},  {5, 15, 24},  {6, 12, 16},  {6, 18, 40},
                                             {7, 16, 30},  {9, 15, 20},  {10, 16, 28}, {11, 18, 16},
                                             {12, 12, 36}, {13, 16, 24}, {14, 15, 44}, {16, 16, 20}};
  all.insert(all.end(), others.begin(), others.end());
  const auto times = train::time_shapes(run, all, repeats);
  const auto middle = times.begin() + static_cast<int64_t>(probe.size());
  const auto rates = train::fit_rates({times.begin(), middle});
  double worst = 0.0;
  double sum = 0.0;
  for (auto it = middle; it != times.end(); ++it) {
    const double error = std::abs(rates.seconds(it->work) / it->cpu_seconds - 1.0);
    fmt::print(stderr,
               "{:3} items, {:3} image tokens, {:3} text tokens: measured {:7.2f} ms, predicted {:7.2f} ms "
               "({:+.1f} %)\n",
               it->shape.items, it->shape.image_tokens, it->shape.text_tokens, 1e3 * it->cpu_seconds,
               1e3 * rates.seconds(it->work), 100.0 * (rates.seconds(it->work) / it->cpu_seconds - 1.0));
    worst = std::max(worst, error);
    sum += error;
  }
  fmt::print(
      R"({{"bench":"work","metric":"worst_error_over_{}_shapes","value":{:.4f},"unit":"fraction","target":0.10,"ok":{}}})"
      "\n",
      others.size(), worst, worst <= 0.10);
  fmt::print(
      R"({{"bench":"work","metric":"mean_error_over_{}_shapes","value":{:.4f},"unit":"fraction","target":0.10,"ok":{}}})"
      "\n",
      others.size(), sum / static_cast<double>(others.size()),
      sum / static_cast<double>(others.size()) <= 0.10);
  fmt::print(
      stderr,
      "rates: linear {:.3g} FLOP/s, attention {:.3g} FLOP/s, elementwise {:.3g}/s, launches {:.3g}/s\n",
      rates.linear_flops_per_s, rates.attention_flops_per_s, rates.elementwise_per_s, rates.launches_per_s);
  return worst <= 0.10 ? 0 : 1;
}
