#include "chiliad/generate/dpm_solver.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/objective/flow_schedule.h"

namespace chiliad::generate {
namespace {

constexpr double kKarrasRho = 7.0;
constexpr double kLeastKept = 1.0 / (1 << 24);

/// noise / signal at each time of the table.
std::vector<double> table_sigmas(const objective::NoiseSchedule& schedule) {
  std::vector<double> sigmas;
  for (const double kept : schedule.alphas_cumprod) {
    const double floored = std::max(kept, kLeastKept);
    sigmas.push_back(std::sqrt((1.0 - floored) / floored));
  }
  // Only a table that ends in noise alone needs the floor; a cosine one ends below it.
  if (schedule.alphas_cumprod.back() > 0.0) {
    for (size_t t = 0; t < sigmas.size(); ++t) sigmas[t] = schedule.noise[t] / schedule.signal[t];
  }
  return sigmas;
}

/// One time more than there are steps is spread over the table, and the last, data, is left out.
std::vector<double> spaced_times(const DiscretePathOptions& options, int64_t train_steps) {
  const auto total = static_cast<double>(train_steps);
  std::vector<double> times;
  for (int i = 0; i < options.steps; ++i) {
    const int left = options.steps - i;
    switch (options.spacing) {
      case TimeSpacing::kLeading:
        times.push_back(
            static_cast<double>(left * (train_steps / (options.steps + 1)) + options.steps_offset));
        break;
      case TimeSpacing::kTrailing:
        times.push_back(std::nearbyint(total - i * (total / options.steps)) - 1.0);
        break;
      case TimeSpacing::kLinspace:
        times.push_back(std::nearbyint(left * ((total - 1.0) / options.steps)));
        break;
    }
  }
  return times;
}

std::vector<double> karras_sigmas(double most, double least, int steps) {
  const double first = std::pow(most, 1.0 / kKarrasRho);
  const double last = std::pow(least, 1.0 / kKarrasRho);
  std::vector<double> sigmas;
  for (int i = 0; i < steps; ++i) {
    const double share = steps == 1 ? 0.0 : static_cast<double>(i) / (steps - 1);
    sigmas.push_back(std::pow(first + share * (last - first), kKarrasRho));
  }
  return sigmas;
}

/// Nearest whole time to a noise level, by the logarithm between neighbours. sigmas: rising.
double time_of(double sigma, const std::vector<double>& sigmas) {
  const auto above = std::upper_bound(sigmas.begin(), sigmas.end(), sigma);
  if (above == sigmas.begin()) return 0.0;
  if (above == sigmas.end()) return static_cast<double>(sigmas.size() - 1);
  const double low = std::log(*(above - 1));
  const double share = (std::log(sigma) - low) / (std::log(*above) - low);
  return std::nearbyint(static_cast<double>(above - sigmas.begin() - 1) + share);
}

/// Rate noise / signal: the exponential of minus the half log SNR, finite also where the noise is 0.
double rate(const SolverPath& path, size_t i) {
  return path.noise[i] / path.signal[i];
}

}  // namespace

SolverPath discrete_path(const objective::NoiseSchedule& schedule, const DiscretePathOptions& options) {
  const int64_t train_steps = schedule.train_steps();
  if (options.steps < 1 || options.steps >= train_steps) {
    throw InvalidInput("dpm_solver.steps",
                       fmt::format("expected 1 to {}, got {}", train_steps - 1, options.steps));
  }
  const auto table = table_sigmas(schedule);
  SolverPath path;
  std::vector<double> sigmas;
  if (options.sigmas == SigmaSpacing::kKarras) {
    sigmas = karras_sigmas(table.back(), table.front(), options.steps);
    for (const double sigma : sigmas) path.times.push_back(time_of(sigma, table));
  } else {
    path.times = spaced_times(options, train_steps);
    if (path.times.front() >= static_cast<double>(train_steps) || path.times.back() < 0.0) {
      throw InvalidInput("dpm_solver.steps_offset",
                         fmt::format("expected times in [0, {}), got {} to {}", train_steps,
                                     path.times.back(), path.times.front()));
    }
    for (const double time : path.times) sigmas.push_back(table[static_cast<size_t>(time)]);
  }
  sigmas.push_back(options.final_sigma == FinalSigma::kZero ? 0.0 : table.front());
  for (const double sigma : sigmas) {
    path.signal.push_back(1.0 / std::sqrt(1.0 + sigma * sigma));
    path.noise.push_back(sigma * path.signal.back());
  }
  return path;
}

SolverPath flow_path(const FlowPathOptions& options) {
  if (options.steps < 1)
    throw InvalidInput("dpm_solver.steps", fmt::format("expected 1 or more, got {}", options.steps));
  const auto total = static_cast<double>(options.train_steps);
  SolverPath path;
  for (int i = 0; i <= options.steps; ++i) {
    // This order of operations decides which times fall just below a whole number, and so what they round to.
    const int left = options.steps - i;
    const double even = 1.0 - (left * ((1.0 / total - 1.0) / options.steps) + 1.0);
    const double sigma = objective::shift_time(even, options.shift);
    path.noise.push_back(sigma);
    path.signal.push_back(1.0 - sigma);
    if (i == options.steps) break;
    path.times.push_back(options.whole_times ? std::floor(sigma * total) : sigma * total);
  }
  return path;
}

DpmSolver::DpmSolver(SolverPath path, const DpmSolverOptions& options)
    : path_(std::move(path)), options_(options) {
  CHILIAD_CHECK_EQ(path_.signal.size(), path_.times.size() + 1);
  CHILIAD_CHECK_EQ(path_.noise.size(), path_.times.size() + 1);
}

at::Tensor DpmSolver::predicted_sample(const at::Tensor& model_output, const at::Tensor& x, size_t i) const {
  const double a = path_.signal[i];
  const double s = path_.noise[i];
  switch (options_.prediction) {
    case SolverPrediction::kNoise:
      return (x - s * model_output) / a;
    case SolverPrediction::kVelocity:
      return a * x - s * model_output;
    case SolverPrediction::kSample:
      return model_output;
    case SolverPrediction::kFlow:
      return x - s * model_output;
  }
  throw InternalError("dpm_solver", "prediction without a meaning");
}

bool DpmSolver::is_first_order(size_t i) const {
  if (i == 0) return true;
  if (i + 1 < path_.times.size()) return false;
  return path_.noise[i + 1] == 0.0 || (options_.lower_order_final && path_.times.size() < 15);
}

at::Tensor DpmSolver::step(const at::Tensor& model_output, const at::Tensor& x, int64_t i,
                           SamplerState& state) const {
  const auto now = static_cast<size_t>(i);
  CHILIAD_CHECK_LT(now, path_.times.size());
  const at::Tensor x0 = predicted_sample(model_output, x, now);
  const at::Tensor before = std::exchange(state.previous_x0, x0);
  const double less_one =
      rate(path_, now + 1) / rate(path_, now) - 1.0;  // e^-h - 1, h the step in log SNR / 2
  const double signal = path_.signal[now + 1];
  const at::Tensor first = (path_.noise[now + 1] / path_.noise[now]) * x - signal * less_one * x0;
  if (is_first_order(now)) return first;
  CHILIAD_CHECK(before.defined(), "step {} came before step {}", i, i - 1);
  const double h = std::log(rate(path_, now) / rate(path_, now + 1));
  const double h_before = std::log(rate(path_, now - 1) / rate(path_, now));
  const at::Tensor slope = (x0 - before) * (h / h_before);
  const double factor = options_.form == SolverForm::kMidpoint ? -0.5 * less_one : less_one / h + 1.0;
  return first + signal * factor * slope;
}

}  // namespace chiliad::generate
