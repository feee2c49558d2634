#include "chiliad/stepplan/work_model.h"

#include "chiliad/spec/layer_table.h"

namespace chiliad::stepplan {

WorkModel make_work_model(const spec::ModelOptions& model, const spec::Rates& rates) {
  const spec::LayerTable table = spec::make_layer_table(model);
  const int64_t patch = model.patch;
  return [table, patch, rates](Bucket bucket, int64_t num_items, int64_t max_tokens) {
    if (num_items == 0) return 0.0;
    return rates.seconds(
        table.step_work({num_items, (bucket.width / patch) * (bucket.height / patch), max_tokens}));
  };
}

// A decoder of plain blocks: its projections, a causal half of attention, the output over the vocabulary;
// backward is twice the forward.
RowWork make_row_work(const spec::ModelOptions& model, int64_t vocabulary, const spec::Rates& rates) {
  const auto width = static_cast<double>(model.width);
  const auto depth = static_cast<double>(model.depth);
  const double weights = depth * width * width * (4.0 + 2.0 * static_cast<double>(model.mlp_ratio)) +
                         width * static_cast<double>(vocabulary);
  const double values = depth * width * (10.0 + 4.0 * static_cast<double>(model.mlp_ratio));
  return [=](int64_t num_tokens, double sum_of_squares) {
    if (num_tokens == 0) return 0.0;
    spec::Work work;
    work.linear_flops = 6.0 * weights * static_cast<double>(num_tokens);
    work.attention_flops = 6.0 * depth * width * sum_of_squares;
    work.elementwise = 3.0 * values * static_cast<double>(num_tokens);
    work.launches = 3.0 * (20.0 * depth + 10.0);
    return rates.seconds(work);
  };
}

}  // namespace chiliad::stepplan
