#include "chiliad/objective/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "chiliad/base/error.h"
#include "chiliad/base/rng.h"
#include "chiliad/objective/flow.h"
#include "chiliad/objective/flow_schedule.h"

namespace chiliad::objective {
namespace {

/// Keys in an order that has nothing to do with the data's.
std::vector<uint64_t> shuffled(std::span<const uint64_t> item_keys, uint64_t seed) {
  std::vector<std::pair<uint64_t, uint64_t>> ranked;
  for (const uint64_t key : item_keys)
    ranked.emplace_back(Rng({seed, key, static_cast<uint64_t>(Draw::kOrder)}).next_u64(), key);
  std::sort(ranked.begin(), ranked.end());
  std::vector<uint64_t> keys;
  for (const auto& [rank, key] : ranked) keys.push_back(key);
  return keys;
}

/// Inverse of the standard normal distribution, by bisection: exact to rounding, and not called often.
double normal_quantile(double probability) {
  double low = -10.0;
  double high = 10.0;
  for (int i = 0; i < 64; ++i) {
    const double middle = 0.5 * (low + high);
    const double below = 0.5 * std::erfc(-middle / std::numbers::sqrt2);
    (below < probability ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

}  // namespace

std::map<uint64_t, std::vector<ValidationDraw>> make_validation_draws(std::span<const uint64_t> item_keys,
                                                                      const ValidationOptions& options) {
  CHILIAD_CHECK_GT(options.draws_per_item, 0);
  const auto num_items = static_cast<double>(item_keys.size());
  std::map<uint64_t, std::vector<ValidationDraw>> draws;
  double position = 0.0;
  for (const uint64_t key : shuffled(item_keys, options.seed)) {
    auto& own = draws[key];
    if (!own.empty()) {
      throw InvalidInput("validation", fmt::format("expected keys of items that differ, got {:#x} twice. "
                                                   "Remove the second item from the set",
                                                   key));
    }
    for (int repeat = 0; repeat < options.draws_per_item; ++repeat) {
      const auto number = static_cast<uint64_t>(repeat);
      Rng rng({options.seed, key, static_cast<uint64_t>(Draw::kTime), number});
      const double in_set = (position + rng.uniform_double()) / num_items;
      const double quantile = (repeat + in_set) / options.draws_per_item;
      own.push_back(
          {.item_key = key,
           .repeat = repeat,
           .quantile = std::clamp(quantile, 1e-9, 1.0 - 1e-9),
           .draw_key = Rng({options.seed, key, static_cast<uint64_t>(Draw::kNoise), number}).next_u64()});
    }
    position += 1.0;
  }
  return draws;
}

float validation_time(const spec::ObjectiveOptions& options, double quantile, int64_t image_tokens) {
  const TimeDensityOptions density = time_density(options);
  const bool normal = density.density == TimeDensity::kLogitNormal;
  const double draw = normal ? normal_quantile(quantile) : quantile;
  return shifted_time(options, density_time(density, draw), image_tokens);
}

int64_t validation_timestep(double quantile, int64_t train_steps) {
  const auto time = static_cast<int64_t>(quantile * static_cast<double>(train_steps));
  return std::clamp<int64_t>(time, 0, train_steps - 1);
}

void LossByTime::add(double quantile, double weighted_loss, double weight) {
  const size_t bins = sums_.size() / 2;
  const auto bin = std::min(static_cast<size_t>(quantile * static_cast<double>(bins)), bins - 1);
  sums_[2 * bin] += weighted_loss;
  sums_[2 * bin + 1] += weight;
}

std::vector<double> LossByTime::means() const {
  std::vector<double> means;
  for (size_t bin = 0; bin < sums_.size(); bin += 2) means.push_back(sums_[bin] / sums_[bin + 1]);
  return means;
}

}  // namespace chiliad::objective
