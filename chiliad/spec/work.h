#pragma once

#include "chiliad/spec/layer_table.h"
#include "chiliad/spec/options/parallel.h"

namespace chiliad::spec {

/// How fast one rank does each kind of work. Measured (`chiliad probe`), recorded with the layout, used by
/// `pack` alone: rates change the packing, and with it rounding, never the content of a step.
struct Rates {
  double linear_flops_per_s = 1e11;
  double attention_flops_per_s = 5e10;
  double elementwise_per_s = 5e9;
  double launches_per_s = 3.5e4;

  [[nodiscard]] double seconds(const Work& work) const {
    return work.linear_flops / linear_flops_per_s + work.attention_flops / attention_flops_per_s +
           work.elementwise / elementwise_per_s + work.launches / launches_per_s;
  }
};

[[nodiscard]] inline Rates rates_of(const ParallelOptions& options) {
  return {options.rate_linear, options.rate_attention, options.rate_elementwise, options.rate_launch};
}

}  // namespace chiliad::spec
