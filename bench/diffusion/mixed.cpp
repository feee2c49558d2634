#include "bench/diffusion/mixed.h"

#include <ATen/ATen.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <vector>

#include "bench/diffusion/trained_layer.h"
#include "chiliad/base/rng.h"
#include "chiliad/device/tensor.h"
#include "chiliad/model/diffusion.h"
#include "chiliad/ops/patches.h"
#include "chiliad/parallel/segment.h"
#include "chiliad/spec/options/data.h"
#include "chiliad/stepplan/plan.h"

namespace chiliad::bench {
namespace {

constexpr int64_t kItems = 64;
constexpr int64_t kPatchPixels = 16;  // 2 latents of 8 pixels
constexpr int64_t kPatch = 2;
constexpr int64_t kTextChannels = 384;
constexpr double kTarget = 2.2;

struct Picture {
  int64_t rows = 0;  // of patches
  int64_t columns = 0;
  int64_t text = 0;
  auto operator<=>(const Picture&) const = default;
};

/// Photographs as people have them: seven in ten of a camera's ratios, the others of any from 1:2.3 to 2.3:1,
/// the longer side 0.75 to 3.125 of `side`.
std::vector<std::pair<double, double>> draw_sizes(int64_t side) {
  constexpr double kRatios[] = {1.0, 4.0 / 3, 3.0 / 2, 16.0 / 9, 3.0 / 4, 2.0 / 3, 9.0 / 16};
  Rng rng({20261129});
  std::vector<std::pair<double, double>> sizes;
  for (int64_t i = 0; i < kItems; ++i) {
    const bool camera = rng.uniform_double() < 0.7;
    const double ratio =
        camera ? kRatios[rng.below(std::size(kRatios))] : std::pow(2.0, 2.4 * rng.uniform_double() - 1.2);
    const double longer = static_cast<double>(side) * (0.75 + 2.375 * rng.uniform_double());
    sizes.emplace_back(ratio >= 1.0 ? longer : longer * ratio, ratio >= 1.0 ? longer / ratio : longer);
  }
  return sizes;
}

int64_t draw_text(size_t i) {
  Rng rng({i, 9});
  return 8 + static_cast<int64_t>(rng.below(70));
}

/// Own shapes: never enlarged, at most side^2 pixels, sides in patches.
std::vector<Picture> native_pictures(int64_t side) {
  std::vector<Picture> pictures;
  const auto area = static_cast<double>(side * side);
  for (const auto& [width, height] : draw_sizes(side)) {
    const double scale = std::min(1.0, std::sqrt(area / (width * height)));
    const auto patches = [&](double length) {
      return std::max<int64_t>(1, std::llround(length * scale / static_cast<double>(kPatchPixels)));
    };
    pictures.push_back({patches(height), patches(width), draw_text(pictures.size())});
  }
  return pictures;
}

/// The nearest shapes of `make_buckets`, all of about side^2 pixels.
std::vector<Picture> bucketed_pictures(int64_t side) {
  spec::DataOptions data;
  data.resolution = side;
  data.bucket_step = side / 8;
  data.bucket_min = side / 2;
  data.bucket_max = side * 2;
  const auto buckets = stepplan::make_buckets(data);
  std::vector<Picture> pictures;
  for (const auto& [width, height] : draw_sizes(side)) {
    const auto at = stepplan::assign_bucket(buckets, std::llround(width), std::llround(height));
    const auto bucket = buckets[static_cast<size_t>(at)];
    pictures.push_back(
        {bucket.height / kPatchPixels, bucket.width / kPatchPixels, draw_text(pictures.size())});
  }
  return pictures;
}

int64_t patches_of(const std::vector<Picture>& pictures) {
  int64_t sum = 0;
  for (const auto& picture : pictures) sum += picture.rows * picture.columns;
  return sum;
}

/// A micro-batch, and the weight of each value's square in the loss: 1 over its picture's values, padding 0.
struct MicroBatch {
  model::LatentBatch inputs;
  at::Tensor weights;
};

void add_conditions(const std::string& family, int64_t items, model::LatentBatch& inputs) {
  inputs.time = at::randint(0, 1000, {items}).to(at::kFloat);
  if (family == "dit") inputs.labels = at::randint(0, 1000, {items});
}

/// Pictures in the corner of one shape, captions padded to the longest.
MicroBatch padded(const std::string& family, const std::vector<Picture>& pictures) {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t text = 0;
  for (const auto& picture : pictures) {
    rows = std::max(rows, picture.rows);
    columns = std::max(columns, picture.columns);
    text = std::max(text, picture.text);
  }
  const auto items = std::ssize(pictures);
  MicroBatch batch;
  batch.inputs.latents = at::randn({items, 4, rows * kPatch, columns * kPatch});
  batch.weights = at::zeros({items, 1, rows * kPatch, columns * kPatch});
  add_conditions(family, items, batch.inputs);
  if (family == "pixart") {
    batch.inputs.text = at::randn({items, text, kTextChannels});
    batch.inputs.text_mask = at::zeros({items, text}, at::kBool);
  }
  for (int64_t i = 0; i < items; ++i) {
    const Picture& picture = pictures[static_cast<size_t>(i)];
    const auto count = static_cast<double>(4 * kPatch * kPatch * picture.rows * picture.columns * kItems);
    batch.weights[i]
        .narrow(1, 0, picture.rows * kPatch)
        .narrow(2, 0, picture.columns * kPatch)
        .fill_(1.0 / count);
    if (family == "pixart") batch.inputs.text_mask[i].narrow(0, 0, picture.text).fill_(true);
  }
  return batch;
}

/// Each shape by itself.
std::vector<MicroBatch> bucketed(const std::string& family, const std::vector<Picture>& pictures) {
  std::map<std::pair<int64_t, int64_t>, std::vector<Picture>> by_shape;
  for (const auto& picture : pictures) by_shape[{picture.rows, picture.columns}].push_back(picture);
  std::vector<MicroBatch> batches;
  for (const auto& [shape, same] : by_shape) batches.push_back(padded(family, same));
  return batches;
}

/// All one after another.
MicroBatch packed(const std::string& family, std::vector<Picture> pictures) {
  std::sort(pictures.begin(), pictures.end());
  const int64_t values = 4 * kPatch * kPatch;
  MicroBatch batch;
  std::vector<int64_t> grids;
  std::vector<int64_t> texts;
  std::vector<at::Tensor> weights;
  int64_t tokens = 0;
  for (const auto& [rows, columns, text] : pictures) {
    grids.insert(grids.end(), {rows, columns});
    texts.push_back(text);
    tokens += text;
    const auto count = static_cast<double>(values * rows * columns * kItems);
    weights.push_back(at::full({1, rows * columns, 1}, 1.0 / count));
  }
  batch.inputs.latents = at::randn({1, patches_of(pictures), values});
  batch.inputs.grids = at::tensor(grids).view({-1, 2});
  batch.weights = at::cat(weights, 1);
  add_conditions(family, std::ssize(pictures), batch.inputs);
  if (family != "pixart") return batch;
  batch.inputs.text = at::randn({1, tokens, kTextChannels});
  batch.inputs.text_lengths = at::tensor(texts);
  return batch;
}

class Training {
 public:
  explicit Training(const MixedOptions& options) {
    network_.family = options.family;
    network_.heads = 6;
    network_.head_size = 64;
    network_.depth = options.depth;
    network_.out_channels = 4;
    if (options.family == "pixart") network_.text_channels = kTextChannels;
    for (auto& layer : model::build_diffusion(network_)) layers_.emplace_back(std::move(layer), options.type);
  }

  /// Returns CPU seconds.
  double step(const std::vector<MicroBatch>& batches) {
    const Instant start;
    for (auto& layer : layers_) layer.open();
    for (const auto& batch : batches) add_gradients(batch);
    double squares = 0.0;
    for (auto& layer : layers_) squares += layer.close();
    ops::AdamWStep update{.lr = 1e-5, .weight_decay = 0.01, .step = ++num_steps_};
    update.grad_scale = std::min(1.0, 1.0 / std::sqrt(squares));
    for (auto& layer : layers_) layer.update(update);
    return Instant().cpu - start.cpu;
  }

 private:
  void add_gradients(const MicroBatch& batch) {
    layers::Carry carry = model::make_diffusion_input(network_, batch.inputs);
    std::vector<parallel::Segment> segments;
    for (const auto& layer : layers_) segments.push_back(parallel::run_forward(layer.layer(), carry, {}));
    const at::Tensor prediction = carry.get("prediction");
    layers::Carry gradients;
    gradients.set("prediction", (2.0 * (prediction.to(at::kFloat) - batch.inputs.latents) * batch.weights)
                                    .to(prediction.scalar_type()));
    while (!segments.empty()) {
      parallel::run_backward(std::move(segments.back()), gradients);
      segments.pop_back();
    }
  }

  spec::DiffusionOptions network_;
  std::vector<TrainedLayer> layers_;
  int64_t num_steps_ = 0;
};

using Ways = std::vector<std::pair<std::string, std::vector<MicroBatch>>>;

/// `pictures` as padding and as each of the other ways.
void compare(const MixedOptions& options, const std::string& shapes, const std::vector<Picture>& pictures,
             Training& training, const Ways& ways) {
  std::vector<std::vector<double>> seconds(ways.size());
  for (int round = 0; round <= options.rounds; ++round) {
    for (size_t i = 0; i < ways.size(); ++i) {
      const double taken = training.step(ways[i].second);
      if (round > 0) seconds[i].push_back(taken);  // the first warms up
    }
  }
  const double real = static_cast<double>(patches_of(pictures));
  const at::Tensor& whole = ways[0].second[0].inputs.latents;
  const double all = static_cast<double>(whole.size(0) * whole.size(2) * whole.size(3)) / (kPatch * kPatch);
  const std::string name = fmt::format("{}_{}_{}t_{}", options.family,
                                       options.type == at::kFloat ? "fp32" : "bf16", options.threads, shapes);
  fmt::print(R"({{"bench":"mixed","metric":"{}_padding","value":{:.4f},"unit":"share of the padded pixels"}})"
             "\n",
             name, 1.0 - real / all);
  const double pad = median(seconds[0]);
  for (size_t i = 0; i < ways.size(); ++i) {
    const double own = median(seconds[i]);
    fmt::print(R"({{"bench":"mixed","metric":"{}_{}","value":{:.4f},"unit":"CPU s a step of {} pictures",)"
               R"("megapixels_a_cpu_s":{:.4f}}})"
               "\n",
               name, ways[i].first, own, kItems,
               real * static_cast<double>(kPatchPixels * kPatchPixels) / 1e6 / own);
    if (i == 0) continue;
    fmt::print(
        R"({{"bench":"mixed","metric":"{}_pad_over_{}","value":{:.4f},"unit":"ratio of CPU s","target":{},"ok":{}}})"
        "\n",
        name, ways[i].first, pad / own, kTarget, pad / own >= kTarget);
  }
  std::fflush(stdout);
}

}  // namespace

void time_mixed(const MixedOptions& options) {
  device::set_compute_threads(options.threads);
  Training training(options);
  const std::string& family = options.family;
  const auto buckets = bucketed_pictures(options.side);
  compare(options, "buckets_shapes", buckets, training,
          {{"pad", {padded(family, buckets)}},
           {"bucket", bucketed(family, buckets)},
           {"pack", {packed(family, buckets)}}});
  const auto native = native_pictures(options.side);
  compare(options, "own_shapes", native, training,
          {{"pad", {padded(family, native)}}, {"pack", {packed(family, native)}}});
}

}  // namespace chiliad::bench
