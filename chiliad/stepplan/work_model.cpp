#include "chiliad/stepplan/work_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "chiliad/spec/shape_stages.h"
#include "chiliad/stepplan/plan.h"

namespace chiliad::stepplan {

namespace {

constexpr const char* kTextEncoder = "text_encoder";

using Seconds = std::function<double(const spec::BatchShape&)>;

bool is_near(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b));
}

/// Seconds of a micro-batch of pictures as a polynomial, for a table asks every layer: a fixed part and, for
/// each item, one of second degree in the tokens of its picture and its caption.
class PictureCurve {
 public:
  explicit PictureCurve(Seconds exact) : exact_(std::move(exact)) {
    const auto at = [&](double n, double x, double t) {
      return exact_({static_cast<int64_t>(n), static_cast<int64_t>(x), static_cast<int64_t>(t)});
    };
    constexpr double kX = 64.0;
    constexpr double kT = 16.0;
    const auto item = [&](double x, double t) { return at(2, x, t) - at(1, x, t); };
    fixed_ = 2.0 * at(1, kX, kT) - at(2, kX, kT);
    const double base = item(kX, kT);
    const double x2 = item(2 * kX, kT);
    const double t2 = item(kX, 2 * kT);
    xx_ = (item(3 * kX, kT) - 2.0 * x2 + base) / (2.0 * kX * kX);
    tt_ = (item(kX, 3 * kT) - 2.0 * t2 + base) / (2.0 * kT * kT);
    xt_ = (item(2 * kX, 2 * kT) - x2 - t2 + base) / (kX * kT);
    x_ = (x2 - base) / kX - 3.0 * xx_ * kX - xt_ * kT;
    t_ = (t2 - base) / kT - 3.0 * tt_ * kT - xt_ * kX;
    item_ = base - x_ * kX - t_ * kT - xx_ * kX * kX - xt_ * kX * kT - tt_ * kT * kT;
    fits_ = is_near(curve(7, 1000, 77), at(7, 1000, 77)) && is_near(curve(3, 4096, 1), at(3, 4096, 1)) &&
            is_near(curve(32, 16, 300), at(32, 16, 300));
  }

  [[nodiscard]] double operator()(int64_t items, int64_t image_tokens, int64_t text_tokens) const {
    if (!fits_) return exact_({items, image_tokens, text_tokens});
    return curve(static_cast<double>(items), static_cast<double>(image_tokens),
                 static_cast<double>(text_tokens));
  }

 private:
  [[nodiscard]] double curve(double n, double x, double t) const {
    return fixed_ + n * (item_ + x * (x_ + xx_ * x + xt_ * t) + t * (t_ + tt_ * t));
  }

  Seconds exact_;
  double fixed_ = 0.0, item_ = 0.0, x_ = 0.0, t_ = 0.0, xx_ = 0.0, xt_ = 0.0, tt_ = 0.0;
  bool fits_ = false;
};

Seconds seconds_of(spec::LayerTable table, const spec::Rates& rates) {
  return [table = std::move(table), rates](const spec::BatchShape& shape) {
    return rates.seconds(table.step_work(shape));
  };
}

spec::LayerTable part_of(const spec::LayerTable& table, bool text_encoder) {
  spec::LayerTable part;
  for (const auto& layer : table.layers) {
    if ((layer.component == kTextEncoder) == text_encoder) part.layers.push_back(layer);
  }
  return part;
}

}  // namespace

WorkModel make_work_model(const spec::ModelOptions& model, const spec::Rates& rates) {
  const int64_t side = spec::token_pixels(model);
  const PictureCurve curve(seconds_of(spec::make_layer_table(model), rates));
  return [curve, side](Bucket bucket, int64_t num_items, int64_t max_tokens) {
    if (num_items == 0) return 0.0;
    return curve(num_items, (bucket.width / side) * (bucket.height / side), max_tokens);
  };
}

std::vector<std::string> balanced_components(const spec::ModelOptions& model) {
  const auto table = spec::make_layer_table(model);
  const size_t text_layers = part_of(table, true).layers.size();
  if (text_layers == 0 || text_layers == table.layers.size()) return {};
  return {kTextEncoder, "backbone"};
}

ComponentWork make_component_work(const spec::ModelOptions& model, const spec::Rates& rates) {
  const int64_t side = spec::token_pixels(model);
  const auto table = spec::make_layer_table(model);
  const PictureCurve text(seconds_of(part_of(table, true), rates));
  const PictureCurve rest(seconds_of(part_of(table, false), rates));
  return [text, rest, side](Bucket bucket, int64_t num_items, int64_t max_tokens) {
    if (num_items == 0) return Works{};
    const int64_t tokens = (bucket.width / side) * (bucket.height / side);
    return Works{text(num_items, tokens, max_tokens), rest(num_items, tokens, max_tokens)};
  };
}

// Work of a row is a sum over its tokens and their pairs, and its overhead.
RowWork make_row_work(const spec::ModelOptions& model, const spec::Rates& rates) {
  const Seconds exact = seconds_of(spec::make_layer_table(model), rates);
  const auto at = [&](int64_t tokens, double pairs) { return exact({1, 0, tokens, pairs}); };
  const double pair = (at(1000, 2e6) - at(1000, 1e6)) / 1e6;
  const double token = (at(2000, 1e6) - at(1000, 1e6)) / 1000.0;
  const double fixed = at(1000, 1e6) - 1000.0 * token - 1e6 * pair;
  const auto curve = [=](int64_t tokens, double pairs) {
    return fixed + token * static_cast<double>(tokens) + pair * pairs;
  };
  const bool fits = is_near(curve(7, 30.0), at(7, 30.0)) && is_near(curve(8192, 4e7), at(8192, 4e7));
  return [=](int64_t num_tokens, double sum_of_squares) {
    if (num_tokens == 0) return 0.0;
    return fits ? curve(num_tokens, sum_of_squares) : exact({1, 0, num_tokens, sum_of_squares});
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
  for (const spec::DataOptions& stage : spec::stage_options(data)) {
    for (const Bucket& bucket : make_buckets(stage)) {
      const int64_t side = spec::token_pixels(model);
      const int64_t tokens = (bucket.width / side) * (bucket.height / side);
      const int64_t text = spec::reads_captions(model) ? model.text_max_tokens : 1;
      const int64_t most = data.mode == "pack" ? std::max<int64_t>(1, data.micro_batch_tokens / tokens)
                                               : stage.micro_batch_items;
      shapes.push_back({std::min(most, data.batch), tokens, text});
    }
  }
  return shapes;
}

}  // namespace chiliad::stepplan
