#include "bench/balance/at_scale.h"

#include <fmt/core.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

#include "bench/balance/distributions.h"
#include "chiliad/spec/layer_table.h"
#include "chiliad/spec/work.h"
#include "chiliad/stepplan/balance.h"
#include "chiliad/stepplan/buckets.h"
#include "chiliad/stepplan/pack.h"
#include "chiliad/stepplan/permutation.h"
#include "chiliad/stepplan/plan.h"
#include "chiliad/stepplan/work_model.h"

namespace chiliad::bench {
namespace {

constexpr int kRanks[] = {8, 61, 64, 896, 1000, 1016, 1024};
constexpr int64_t kSteps = 64;  // of an epoch, at equal distances
constexpr double kTotalTarget = 1.02;
constexpr double kComponentTarget = 1.05;
constexpr double kPackTargetMs = 5.0;
constexpr int64_t kTextTokens = 300;

// A device of about 400 TFLOP/s in bf16; operators start behind the one at work.
constexpr spec::Rates kDevice{4e14, 2e14, 1.5e12, 1e6};

/// CPU milliseconds of this process.
double cpu_ms() {
  return 1e3 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

/// Steps of a set: items of equal count from a keyed permutation, as an epoch of `order: full` has them;
/// clustered: sorted by bucket before they are cut, as one window with `shape_clusters` of all buckets.
class Set {
 public:
  explicit Set(std::vector<stepplan::Item> items, bool clustered = false) {
    const stepplan::Permutation order(items.size(), 1);
    items_.reserve(items.size());
    for (size_t i = 0; i < items.size(); ++i) items_.push_back(items[order(i)]);
    if (!clustered) return;
    std::stable_sort(items_.begin(), items_.end(),
                     [](const auto& a, const auto& b) { return a.bucket < b.bucket; });
  }

  [[nodiscard]] stepplan::Step step(int64_t number, int64_t batch) const {
    stepplan::Step step;
    step.step = number;
    const auto last = std::min<int64_t>((number + 1) * batch, static_cast<int64_t>(items_.size()));
    for (int64_t i = number * batch; i < last; ++i) {
      step.items.push_back(items_[static_cast<size_t>(i)]);
      step.items.back().position = static_cast<uint32_t>(step.items.size() - 1);
    }
    return step;
  }
  [[nodiscard]] int64_t steps(int64_t batch) const { return static_cast<int64_t>(items_.size()) / batch; }

 private:
  std::vector<stepplan::Item> items_;
};

struct Case {
  std::string name;
  const Set& set;
  std::vector<stepplan::Bucket> buckets;
  stepplan::PackOptions options;
  int64_t items_a_rank = 8;
  std::vector<stepplan::Sync> syncs{stepplan::Sync::kStep, stepplan::Sync::kSlot};
};

/// What is measured.
struct Wanted {
  std::string only;  ///< part of a case's name
  int ranks = 0;     ///< 0: all
};

struct Measured {
  stepplan::Balance worst{}, bound{};
  double mean = 0.0;
  double in_turn = 0.0;
  double ms = 0.0;
  double slots = 0.0;
  int64_t padding = 0;  // of rows
};

void take_worst(const stepplan::Balance& from, stepplan::Balance& worst) {
  worst.total = std::max(worst.total, from.total);
  worst.time = std::max(worst.time, from.time);
  worst.components.resize(from.components.size(), 1.0);
  for (size_t c = 0; c < from.components.size(); ++c)
    worst.components[c] = std::max(worst.components[c], from.components[c]);
}

Measured measure(const Case& what) {
  Measured measured;
  const int64_t batch = what.items_a_rank * what.options.num_ranks;
  const int64_t steps = what.set.steps(batch);
  const int64_t count = std::min(kSteps, steps);
  stepplan::PackOptions in_turn = what.options;
  in_turn.in_order = true;
  in_turn.sync = stepplan::Sync::kStep;
  for (int64_t i = 0; i < count; ++i) {
    const auto step = what.set.step(i * steps / count, batch);
    const double start = cpu_ms();
    const auto packed = stepplan::pack(step, what.buckets, what.options);
    measured.ms += (cpu_ms() - start) / static_cast<double>(count);
    const auto balance = stepplan::balance_of(packed, what.options);
    measured.mean += balance.total / static_cast<double>(count);
    take_worst(balance, measured.worst);
    take_worst(stepplan::granularity_of(packed, what.buckets, what.options), measured.bound);
    const auto turn = stepplan::balance_of(stepplan::pack(step, what.buckets, in_turn), in_turn);
    measured.in_turn += turn.total / static_cast<double>(count);
    measured.slots += static_cast<double>(packed.slots[0].size()) / static_cast<double>(count);
  }
  return measured;
}

/// Where whole items allow no more, what they allow counts as met, within a thousandth.
bool print(const std::string& metric, double value, double bound, double target, const std::string& more) {
  const bool ok = value <= std::max(target, bound + 0.001);
  fmt::print(
      R"({{"bench":"balance","metric":"{}","value":{:.5g},"unit":"ratio","target":{:g},"bound":{:.5g}{},"ok":{}}})"
      "\n",
      metric, value, target, bound, more, ok);
  return ok;
}

const char* name_of(stepplan::Sync sync) {
  return sync == stepplan::Sync::kStep ? "step" : "slot";
}

bool run_at(Case what, int ranks) {
  what.options.num_ranks = ranks;
  const Measured measured = measure(what);
  const std::string name = fmt::format("{}_{}_{}", what.name, name_of(what.options.sync), ranks);
  bool ok =
      print(name, measured.worst.total, measured.bound.total, kTotalTarget,
            fmt::format(
                R"(,"mean":{:.5g},"time":{:.5g},"in_turn":{:.4g},"slots":{:.3g},"items":{},"pack_ms":{:.3g})",
                measured.mean, measured.worst.time, measured.in_turn, measured.slots,
                what.items_a_rank * ranks, measured.ms));
  for (size_t c = 0; c < what.options.components.size(); ++c)
    ok &= print(name + "_" + what.options.components[c], measured.worst.components[c],
                measured.bound.components[c], kComponentTarget, "");
  return ok;
}

/// CPU time of `pack` for 8 items on each of 1,024 ranks, median.
bool time_pack(Case what) {
  constexpr int kManyRanks = 1024;
  constexpr int64_t kBatch = 8 * kManyRanks;
  what.options.num_ranks = kManyRanks;
  std::vector<double> times;
  for (int64_t i = 0; i < std::min<int64_t>(21, what.set.steps(kBatch)); ++i) {
    const auto step = what.set.step(i, kBatch);
    const double start = cpu_ms();
    (void)stepplan::pack(step, what.buckets, what.options);
    times.push_back(cpu_ms() - start);
  }
  std::nth_element(times.begin(), times.begin() + static_cast<ptrdiff_t>(times.size() / 2), times.end());
  const double median = times[times.size() / 2];
  const bool ok = median <= kPackTargetMs;
  fmt::print(
      R"({{"bench":"balance","metric":"{}_{}_pack_8192","value":{:.3g},"unit":"ms","target":{:g},"ok":{}}})"
      "\n",
      what.name, name_of(what.options.sync), median, kPackTargetMs, ok);
  return ok;
}

bool run(Case what, const Wanted& wanted) {
  bool ok = true;
  if (what.name.find(wanted.only) == std::string::npos) return ok;
  for (const auto sync : what.syncs) {
    what.options.sync = sync;
    for (const int ranks : kRanks)
      if (wanted.ranks == 0 || wanted.ranks == ranks) ok &= run_at(what, ranks);
    ok &= time_pack(what);
  }
  return ok;
}

spec::ModelOptions pixart() {
  spec::ModelOptions model;
  model.family = "pixart";
  model.width = 1152;
  model.depth = 28;
  model.heads = 16;
  model.patch = 2;
  model.latent_channels = 4;
  model.latent_pixels = 8;
  model.text_channels = 4096;
  model.text_max_tokens = kTextTokens;
  return model;
}

spec::ModelOptions llama() {
  spec::ModelOptions model;
  model.family = "llama";
  model.width = 4096;
  model.depth = 32;
  model.heads = 32;
  model.mlp_width = 11008;
  model.vocabulary = 32000;
  return model;
}

std::vector<stepplan::Item> pictures_in(const stepplan::BucketTable& table,
                                        const std::vector<test::PictureSize>& photos) {
  std::vector<stepplan::Item> items;
  for (size_t i = 0; i < photos.size(); ++i) {
    const auto choice = table.assign(photos[i].width, photos[i].height);
    if (choice.bucket < 0) continue;
    stepplan::Item& item = items.emplace_back();
    item.sample = static_cast<int64_t>(i);
    item.bucket = choice.bucket;
    item.num_tokens = std::min<uint32_t>(kTextTokens, 1 + photos[i].caption_bytes * 13 / 10);
  }
  return items;
}

bool buckets_and_packs(const std::vector<test::PictureSize>& photos, const Wanted& wanted) {
  const auto model = pixart();
  spec::DataOptions data;
  data.buckets = "pixart-512";
  const stepplan::BucketTable table(data);
  stepplan::PackOptions options;
  options.work = stepplan::make_work_model(model, kDevice);
  options.max_items = 48;
  const auto pictures = pictures_in(table, photos);  // 40 a rank: PixArt's own at 512 pixels
  const Set mixed(pictures);
  const Set clustered(pictures, true);
  bool ok = run({"dit_buckets", mixed, table.buckets(), options, 40, {stepplan::Sync::kStep}}, wanted);
  ok &= run({"dit_buckets", clustered, table.buckets(), options, 40, {stepplan::Sync::kSlot}}, wanted);
  data.buckets = "auto";  // their own sizes, only made smaller
  data.bucket_no_upscale = true;
  data.resolution = 1024;
  data.bucket_step = 32;
  const stepplan::BucketTable own(data);
  const Set packed(pictures_in(own, photos));
  options.positions = stepplan::make_picture_positions(model);
  options.max_tokens = 32768;
  ok &= run({"dit_packs", packed, own.buckets(), options, 16}, wanted);
  return ok;
}

/// A vision transformer (ViT-L/14 at 336 pixels) and its projector, trained: FLOPs of a tile, forward and
/// backward.
double tile_seconds() {
  constexpr double kTokens = 577.0;
  constexpr double kWidth = 1024.0;
  constexpr double kLayers = 24.0;
  const double linear =
      6.0 * kTokens * (12.0 * kLayers * kWidth * kWidth + kWidth * 4096.0 + 4096.0 * 4096.0);
  const double attention = 12.0 * kLayers * kWidth * kTokens * kTokens;
  return linear / kDevice.linear_flops_per_s + attention / kDevice.attention_flops_per_s;
}

bool documents(int64_t count, const Wanted& wanted) {
  constexpr int64_t kLongest = 4096;
  std::vector<stepplan::Item> items;
  for (const Document& document : draw_documents(count, 1, kLongest)) {
    stepplan::Item& item = items.emplace_back();
    item.sample = static_cast<int64_t>(items.size()) - 1;
    item.num_tokens = document.num_tokens;
    item.image_tokens = document.image_tokens;
    item.num_tiles = document.num_tiles;
  }
  const Set set(std::move(items));
  const auto row = stepplan::make_row_work(llama(), kDevice);
  // Work of a row is a sum over its tokens and their pairs, and its overhead.
  const double one = row(1000, 1e6);
  const double pairs = (row(1000, 2e6) - one) / 1e6;
  const double tokens = (row(2000, 1e6) - one) / 1000.0;
  stepplan::PackOptions options;
  options.max_tokens = 32768;
  options.components = {"vision", "language"};
  options.row_overhead = {0.0, one - 1000.0 * tokens - 1e6 * pairs};
  options.item_works = [tokens, pairs, tile = tile_seconds()](const stepplan::Item& item) {
    const double length = item.num_tokens;
    return stepplan::Works{tile * item.num_tiles, tokens * length + pairs * length * length};
  };
  return run({"llava_packs", set, {stepplan::Bucket{}}, options, 16}, wanted);
}

}  // namespace

bool bench_at_scale(int64_t count, const std::string& only, int ranks) {
  const Wanted wanted{only, ranks};
  const bool pictures = buckets_and_packs(draw_photos(count, 1), wanted);
  return documents(count, wanted) && pictures;
}

}  // namespace chiliad::bench
