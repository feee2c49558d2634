#include "chiliad/train/probe.h"

#include <ATen/ATen.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "chiliad/base/error.h"
#include "chiliad/device/tensor.h"
#include "chiliad/model/build_model.h"
#include "chiliad/observe/cpu_time.h"
#include "chiliad/parallel/segment.h"
#include "chiliad/parallel/sharded_layer.h"
#include "chiliad/stepplan/plan.h"
#include "chiliad/train/initial_weights.h"

namespace chiliad::train {
namespace {

constexpr size_t kKinds = 4;
using Terms = std::array<double, kKinds>;

/// Columns x rows = tokens, as square as can be.
std::pair<int64_t, int64_t> grid_of(int64_t tokens) {
  auto rows = static_cast<int64_t>(std::sqrt(static_cast<double>(tokens)));
  while (tokens % rows != 0) --rows;
  return {rows, tokens / rows};
}

/// A model with one rank's buffers, as training has it.
class ProbeModel {
 public:
  explicit ProbeModel(const spec::RunFile& run)
      : run_(run),
        table_(spec::make_layer_table(run.model)),
        mesh_(parallel::make_solo_mesh()),
        layers_(model::build_model(run.model)) {
    parallel::ShardOptions options;
    options.compute = device::compute_type(run.parallel.compute);
    pools_ = {parallel::BufferPool(options.compute), parallel::BufferPool(options.compute)};
    for (size_t i = 0; i < layers_.size(); ++i) {
      shards_.push_back(
          std::make_unique<parallel::ShardedLayer>(*layers_[i], table_.layers[i], *mesh_, pools_, options));
      set_initial_weights(*shards_.back(), run.run.seed);
      shards_.back()->open_gradients();
    }
  }

  [[nodiscard]] double run(const spec::BatchShape& shape) {
    const auto [rows, columns] = grid_of(shape.image_tokens);
    const int64_t width = 3 * run_.model.patch * run_.model.patch;
    const at::Tensor patches = at::randn({shape.items, shape.image_tokens, width});
    const at::Tensor tokens = at::ones({shape.items, shape.text_tokens}, at::kLong);
    const double start = observe::thread_cpu_seconds();
    layers::Carry carry =
        model::make_input(run_.model, patches, at::full({shape.items}, 0.5), tokens, rows, columns);
    std::vector<parallel::Segment> segments;
    for (const auto& layer : layers_) segments.push_back(parallel::run_forward(*layer, carry));
    layers::Carry gradients;
    gradients.set("prediction", at::ones_like(carry.get("prediction")));
    while (!segments.empty()) {
      parallel::run_backward(std::move(segments.back()), gradients);
      segments.pop_back();
    }
    return observe::thread_cpu_seconds() - start;
  }

 private:
  const spec::RunFile& run_;
  spec::LayerTable table_;
  std::unique_ptr<parallel::Mesh> mesh_;
  parallel::LayerPools pools_;
  std::vector<std::unique_ptr<layers::Layer>> layers_;
  std::vector<std::unique_ptr<parallel::ShardedLayer>> shards_;
};

Terms terms_of(const spec::Work& work) {
  return {work.linear_flops, work.attention_flops, work.elementwise, work.launches};
}

/// Solves the normal equations for the kinds in `active` by Gauss elimination; others stay 0.
Terms solve(const std::vector<ShapeTime>& times, const std::array<bool, kKinds>& active, const Terms& scale) {
  std::array<std::array<double, kKinds + 1>, kKinds> matrix{};
  for (const auto& time : times) {
    const Terms terms = terms_of(time.work);
    for (size_t i = 0; i < kKinds; ++i) {
      for (size_t j = 0; j < kKinds; ++j) {
        matrix[i][j] += terms[i] / scale[i] * terms[j] / scale[j] / (time.cpu_seconds * time.cpu_seconds);
      }
      matrix[i][kKinds] += terms[i] / scale[i] / time.cpu_seconds;
    }
  }
  for (size_t i = 0; i < kKinds; ++i) {
    if (active[i]) continue;
    for (size_t j = 0; j <= kKinds; ++j) matrix[i][j] = 0.0;
    for (size_t j = 0; j < kKinds; ++j) matrix[j][i] = 0.0;
    matrix[i][i] = 1.0;
  }
  for (size_t i = 0; i < kKinds; ++i) {
    for (size_t row = 0; row < kKinds; ++row) {
      if (row == i || matrix[i][i] == 0.0) continue;
      const double factor = matrix[row][i] / matrix[i][i];
      for (size_t j = 0; j <= kKinds; ++j) matrix[row][j] -= factor * matrix[i][j];
    }
  }
  Terms cost{};
  for (size_t i = 0; i < kKinds; ++i)
    cost[i] = matrix[i][i] == 0.0 ? 0.0 : matrix[i][kKinds] / matrix[i][i] / scale[i];
  return cost;
}

}  // namespace

std::vector<ShapeTime> time_shapes(const spec::RunFile& run, const std::vector<spec::BatchShape>& shapes,
                                   int repeats) {
  ProbeModel model(run);
  const auto table = spec::make_layer_table(run.model);
  std::vector<std::vector<double>> samples(shapes.size());
  for (int repeat = -1; repeat < repeats; ++repeat) {
    for (size_t i = 0; i < shapes.size(); ++i) {
      const double seconds = model.run(shapes[i]);
      if (repeat >= 0) samples[i].push_back(seconds);  // the first round warms up
    }
  }
  std::vector<ShapeTime> times;
  for (size_t i = 0; i < shapes.size(); ++i) {
    auto middle = samples[i].begin() + static_cast<int64_t>(samples[i].size() / 2);
    std::nth_element(samples[i].begin(), middle, samples[i].end());
    times.push_back({shapes[i], table.step_work(shapes[i]), *middle});
  }
  return times;
}

std::vector<spec::BatchShape> probe_shapes(const spec::RunFile& run) {
  int64_t least = INT64_MAX;
  int64_t most = 0;
  for (const auto& bucket : stepplan::make_buckets(run.data)) {
    const int64_t tokens = (bucket.width / run.model.patch) * (bucket.height / run.model.patch);
    least = std::min(least, tokens);
    most = std::max(most, tokens);
  }
  std::vector<spec::BatchShape> shapes;
  for (const int64_t items :
       {int64_t{1}, int64_t{2}, int64_t{4}, int64_t{8}, std::min<int64_t>(16, run.data.micro_batch_items)}) {
    for (const int64_t tokens : {least, most}) {
      for (const int64_t text : {int64_t{12}, std::min<int64_t>(48, run.model.text_max_tokens)}) {
        shapes.push_back({items, tokens, text});
      }
    }
  }
  return shapes;
}

spec::Rates fit_rates(const std::vector<ShapeTime>& times) {
  CHILIAD_CHECK(!times.empty());
  Terms scale{};
  for (const auto& time : times) {
    const Terms terms = terms_of(time.work);
    for (size_t i = 0; i < kKinds; ++i) scale[i] = std::max(scale[i], terms[i]);
  }
  std::array<bool, kKinds> active{true, true, true, true};
  Terms cost = solve(times, active, scale);
  for (size_t round = 0; round < kKinds; ++round) {  // kinds that come out negative cost nothing
    const auto worst = std::min_element(cost.begin(), cost.end());
    if (*worst >= 0.0) break;
    active[static_cast<size_t>(worst - cost.begin())] = false;
    cost = solve(times, active, scale);
  }
  auto rate = [](double seconds_each, double none) { return seconds_each > 0.0 ? 1.0 / seconds_each : none; };
  return {rate(cost[0], 1e18), rate(cost[1], 1e18), rate(cost[2], 1e18), rate(cost[3], 1e12)};
}

}  // namespace chiliad::train
