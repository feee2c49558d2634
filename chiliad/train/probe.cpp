#include "chiliad/train/probe.h"

#include <ATen/ATen.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <memory>

#include "chiliad/base/error.h"
#include "chiliad/device/tensor.h"
#include "chiliad/model/build_model.h"
#include "chiliad/model/trial_input.h"
#include "chiliad/observe/cpu_time.h"
#include "chiliad/ops/cpu/parallel.h"
#include "chiliad/parallel/segment.h"
#include "chiliad/parallel/sharded_layer.h"
#include "chiliad/stepplan/plan.h"
#include "chiliad/train/initial_weights.h"

namespace chiliad::train {
namespace {

bool one_of(const std::string& word, std::initializer_list<const char*> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Of `repeats` rounds over all of `count`, behind one that warms up.
std::vector<double> medians(size_t count, int repeats, const std::function<double(size_t)>& measure) {
  std::vector<std::vector<double>> samples(count);
  for (int repeat = -1; repeat < repeats; ++repeat) {
    for (size_t i = 0; i < count; ++i) {
      const double seconds = measure(i);
      if (repeat >= 0) samples[i].push_back(seconds);
    }
  }
  std::vector<double> middles;
  for (auto& sample : samples) {
    const auto middle = sample.begin() + static_cast<int64_t>(sample.size() / 2);
    std::nth_element(sample.begin(), middle, sample.end());
    middles.push_back(*middle);
  }
  return middles;
}

/// Rows of documents: short and long ones in micro-batches of several sizes.
std::vector<spec::BatchShape> text_shapes(const spec::DataOptions& data) {
  std::vector<spec::BatchShape> shapes;
  for (const int64_t part : {int64_t{4}, int64_t{2}, int64_t{1}}) {
    const int64_t tokens = std::max<int64_t>(1, data.micro_batch_tokens / part);
    for (const int64_t cut : {int64_t{8}, int64_t{1}}) {
      const int64_t length = std::clamp<int64_t>(data.sequence_length / cut, 1, tokens);
      shapes.push_back({1, 0, tokens, static_cast<double>(tokens) * static_cast<double>(length)});
    }
  }
  return shapes;
}

constexpr size_t kKinds = 4;
using Terms = std::array<double, kKinds>;

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
    layers::Carry carry = model::make_trial_input(run_.model, model::trial_shape(shape), at::kFloat);
    const double start = observe::thread_cpu_seconds();
    std::vector<parallel::Segment> segments;
    for (const auto& layer : layers_) segments.push_back(parallel::run_forward(*layer, carry));
    layers::Carry gradients;
    const std::string& output = table_.layers.back().writes.front();
    gradients.set(output, at::ones_like(carry.get(output)));
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
  const auto seconds = medians(shapes.size(), repeats, [&](size_t i) { return model.run(shapes[i]); });
  std::vector<ShapeTime> times;
  for (size_t i = 0; i < shapes.size(); ++i)
    times.push_back({shapes[i], table.step_work(shapes[i]), seconds[i]});
  return times;
}

std::vector<spec::BatchShape> probe_shapes(const spec::RunFile& run) {
  if (spec::is_language_model(run.model)) return text_shapes(run.data);
  int64_t least = INT64_MAX;
  int64_t most = 0;
  for (const auto& bucket : stepplan::make_buckets(run.data)) {
    const int64_t side = spec::token_pixels(run.model);
    const int64_t tokens = (bucket.width / side) * (bucket.height / side);
    least = std::min(least, tokens);
    most = std::max(most, tokens);
  }
  std::vector<int64_t> texts{1};
  if (spec::pads_captions(run.model))
    texts = {run.model.text_max_tokens};
  else if (spec::reads_captions(run.model))
    texts = {12, std::min<int64_t>(48, run.model.text_max_tokens)};
  std::vector<spec::BatchShape> shapes;
  for (const int64_t items :
       {int64_t{1}, int64_t{2}, int64_t{4}, int64_t{8}, std::min<int64_t>(16, run.data.micro_batch_items)}) {
    for (const int64_t tokens : {least, most}) {
      for (const int64_t text : texts) shapes.push_back({items, tokens, text});
    }
  }
  return shapes;
}

std::vector<FormatTime> time_formats(const spec::RunFile& run, int repeats) {
  const auto table = spec::make_layer_table(run.model);
  const auto shapes = probe_shapes(run);
  const auto shape = *std::max_element(shapes.begin(), shapes.end(), [&](const auto& a, const auto& b) {
    return table.step_work(a).flops() < table.step_work(b).flops();
  });
  std::vector<FormatTime> times{{"fp32", "library"}};
  if (ops::cpu::has_kernels()) times.push_back({"fp32", "own"});
  if (ops::cpu::multiplies_bf16() && !spec::is_autoencoder(run.model)) times.push_back({"bf16", "known"});
  std::vector<std::unique_ptr<ProbeModel>> models;
  std::vector<spec::RunFile> runs(times.size(), run);  // outlive the models
  for (size_t i = 0; i < times.size(); ++i) {
    runs[i].parallel.compute = times[i].compute;
    models.push_back(std::make_unique<ProbeModel>(runs[i]));
  }
  const auto seconds = medians(times.size(), repeats, [&](size_t i) {
    ops::cpu::set_fp32_products(times[i].products);
    return models[i]->run(shape);
  });
  ops::cpu::set_fp32_products("known");
  for (size_t i = 0; i < times.size(); ++i) times[i].cpu_seconds = seconds[i];
  return times;
}

FormatChoice choose_formats(const spec::RunFile& run, const std::vector<FormatTime>& times) {
  constexpr double kWorthIt = 0.9;
  FormatChoice choice{run.parallel.compute, run.parallel.products};
  const FormatTime* wide = nullptr;  // the faster of what products allow
  const FormatTime* half = nullptr;
  for (const FormatTime& time : times) {
    if (time.compute == "bf16") {
      half = &time;
      continue;
    }
    const bool allowed =
        one_of(run.parallel.products, {"auto", "known"}) || time.products == run.parallel.products;
    if (allowed && (wide == nullptr || time.cpu_seconds < wide->cpu_seconds)) wide = &time;
  }
  if (choice.products == "auto") choice.products = wide == nullptr ? "known" : wide->products;
  if (choice.compute != "auto") return choice;
  const bool takes_half =
      half != nullptr && (wide == nullptr || half->cpu_seconds <= kWorthIt * wide->cpu_seconds);
  choice.compute = takes_half ? "bf16" : "fp32";
  return choice;
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
