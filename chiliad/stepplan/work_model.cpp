#include "chiliad/stepplan/work_model.h"

#include <algorithm>

#include "chiliad/stepplan/plan.h"

namespace chiliad::stepplan {

WorkModel make_work_model(const spec::ModelOptions& model, const spec::Rates& rates) {
  const spec::LayerTable table = spec::make_layer_table(model);
  const int64_t side = spec::token_pixels(model);
  return [table, side, rates](Bucket bucket, int64_t num_items, int64_t max_tokens) {
    if (num_items == 0) return 0.0;
    return rates.seconds(
        table.step_work({num_items, (bucket.width / side) * (bucket.height / side), max_tokens}));
  };
}

RowWork make_row_work(const spec::ModelOptions& model, const spec::Rates& rates) {
  const spec::LayerTable table = spec::make_layer_table(model);
  return [table, rates](int64_t num_tokens, double sum_of_squares) {
    if (num_tokens == 0) return 0.0;
    return rates.seconds(table.step_work({1, 0, num_tokens, sum_of_squares}));
  };
}

PicturePositions make_picture_positions(const spec::ModelOptions& model) {
  const int64_t side = spec::token_pixels(model);
  const bool joint = spec::pads_captions(model);
  return [side, joint](Bucket bucket, int64_t num_tokens) {
    return (bucket.width / side) * (bucket.height / side) + (joint ? num_tokens : 0);
  };
}

std::vector<spec::BatchShape> largest_batches(const spec::ModelOptions& model,
                                              const spec::DataOptions& data) {
  if (data.mode == "pack" && spec::is_language_model(model)) {
    const int64_t row = std::min(data.micro_batch_tokens, data.batch * data.sequence_length);
    const int64_t document = std::min(row, data.sequence_length);
    return {{1, 0, row, static_cast<double>(row) * static_cast<double>(document)}};
  }
  std::vector<spec::BatchShape> shapes;
  for (const Bucket& bucket : make_buckets(data)) {
    const int64_t side = spec::token_pixels(model);
    const int64_t tokens = (bucket.width / side) * (bucket.height / side);
    const int64_t text = spec::reads_captions(model) ? model.text_max_tokens : 1;
    const int64_t most =
        data.mode == "pack" ? std::max<int64_t>(1, data.micro_batch_tokens / tokens) : data.micro_batch_items;
    shapes.push_back({std::min(most, data.batch), tokens, text});
  }
  return shapes;
}

}  // namespace chiliad::stepplan
