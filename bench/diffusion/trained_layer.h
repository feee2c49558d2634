#pragma once

#include <ATen/core/ScalarType.h>
#include <ATen/core/Tensor.h>

#include <chrono>
#include <memory>
#include <vector>

#include "chiliad/layers/layer.h"
#include "chiliad/observe/cpu_time.h"
#include "chiliad/ops/adamw.h"

namespace chiliad::bench {

struct Instant {
  double wall = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  double cpu = observe::process_cpu_seconds();
};

[[nodiscard]] double median(std::vector<double> values);

/// One layer with its parameters as the trainer keeps them: fp32 values, gradients and moments; where the
/// type is bf16, a bf16 copy to compute with and bf16 gradients.
class TrainedLayer {
 public:
  TrainedLayer(std::unique_ptr<layers::Layer> layer, at::ScalarType type);

  [[nodiscard]] const layers::Layer& layer() const { return *layer_; }
  void open();
  /// Returns the sum of the gradients' squares.
  double close();
  void update(const ops::AdamWStep& step);

 private:
  void publish();

  std::unique_ptr<layers::Layer> layer_;
  bool narrow_;
  at::Tensor values_;
  at::Tensor gradients_;
  at::Tensor exp_avg_;
  at::Tensor exp_avg_sq_;
  at::Tensor at_work_;
  at::Tensor work_gradients_;
};

}  // namespace chiliad::bench
