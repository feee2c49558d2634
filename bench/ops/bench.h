#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace chiliad::bench {

using Tensors = std::vector<at::Tensor>;
using Op = std::function<at::Tensor(const Tensors&)>;

/// What an operator's work is counted in.
enum class Work { kGflop, kGigabytes };

/// Compares operators with the same made of ATen's, in CPU seconds (medians of 7), and with what the core can
/// do. Prints a JSON line each.
class Bench {
 public:
  /// filter: names that have it are run. Measures the peak and the bandwidth.
  explicit Bench(std::string filter);

  /// Forward and backward of both, in turns; work of ours, in GFLOP or GB. target: least ratio of CPU
  /// seconds; 0: none.
  void compare(const std::string& name, const Op& ours, const Op& plain, const Tensors& inputs, double work,
               Work kind, double target = 0.0) const;
  /// What has no backward and is run as it is.
  void compare_runs(const std::string& name, const std::function<void()>& ours,
                    const std::function<void()>& plain, double work, Work kind) const;

 private:
  void print(const std::string& name, double mine, double theirs, double work, Work kind,
             double target) const;

  std::string filter_;
  double peak_ = 0.0;
  double bandwidth_ = 0.0;
};

/// Normal values that want a gradient.
[[nodiscard]] at::Tensor leaf(const std::vector<int64_t>& sizes, at::ScalarType type);
[[nodiscard]] const char* name_of(at::ScalarType type);

/// Operators that memory bounds, and others beside products and attention.
void compare_values(const Bench& bench, at::ScalarType type);

}  // namespace chiliad::bench
