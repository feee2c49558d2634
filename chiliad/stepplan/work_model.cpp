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

RowWork make_row_work(const spec::ModelOptions& model, const spec::Rates& rates) {
  const spec::LayerTable table = spec::make_layer_table(model);
  return [table, rates](int64_t num_tokens, double sum_of_squares) {
    if (num_tokens == 0) return 0.0;
    return rates.seconds(table.step_work({1, 0, num_tokens, sum_of_squares}));
  };
}

}  // namespace chiliad::stepplan
