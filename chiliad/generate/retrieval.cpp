#include "chiliad/generate/retrieval.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/rng.h"
#include "chiliad/image/resize.h"
#include "chiliad/loader/item_loader.h"
#include "chiliad/loader/run_inputs.h"

namespace chiliad::generate {
namespace {

constexpr int32_t kSide = 32;

/// A picture of the training set as the model saw it.
struct TrainingPicture {
  std::string caption;
  stepplan::Bucket bucket;
  std::vector<float> pixels;  // 32 x 32 x 3
};

std::vector<float> small_pixels(const HostArray& picture) {
  const HostArray small = image::resize(picture, kSide, kSide, image::Filter::kBicubic);
  const auto values = small.as<uint8_t>();
  return {values.begin(), values.end()};
}

TrainingPicture load_picture(loader::ItemLoader& items, const stepplan::Item& item, stepplan::Bucket bucket) {
  TrainingPicture picture;
  picture.bucket = bucket;
  HostArray pixels(DType::kU8, Shape{bucket.height, bucket.width, 3});
  const std::string refusal = items.load_alone(item, bucket, pixels.bytes());
  if (!refusal.empty() || item.caption < 0) return picture;
  auto caption = items.read_caption(item.sample, static_cast<uint32_t>(item.caption));
  if (!caption.refusal.empty()) return picture;
  picture.caption = std::move(caption.text);
  picture.pixels = small_pixels(pixels);
  return picture;
}

std::vector<TrainingPicture> load_training_set(const spec::RunFile& run, const index::Index& index,
                                               const stepplan::Plan& plan) {
  loader::ItemLoaderOptions options;
  options.pictures = loader::picture_options(run.data);
  options.pictures.jitter = {};
  options.source = loader::open_source(run, index);
  loader::ItemLoader items(index, options);
  std::vector<TrainingPicture> pictures;
  for (int64_t step = 0; step < plan.steps_per_epoch(); ++step) {
    for (const auto& item : plan.select(step, {}).items) {
      auto picture = load_picture(items, item, plan.buckets()[static_cast<size_t>(item.bucket)]);
      if (!picture.caption.empty()) pictures.push_back(std::move(picture));
    }
  }
  return pictures;
}

/// Pictures to ask for: distinct captions, in a keyed order.
std::vector<size_t> choose(const std::vector<TrainingPicture>& pictures, int count, uint64_t seed) {
  std::vector<size_t> order(pictures.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const uint64_t left = mix64(seed ^ mix64(a));
    const uint64_t right = mix64(seed ^ mix64(b));
    return left != right ? left < right : a < b;
  });
  std::vector<size_t> chosen;
  for (const size_t candidate : order) {
    const bool known = std::any_of(chosen.begin(), chosen.end(), [&](size_t other) {
      return pictures[other].caption == pictures[candidate].caption;
    });
    if (!known) chosen.push_back(candidate);
    if (static_cast<int>(chosen.size()) == count) break;
  }
  return chosen;
}

double squared_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>((a[i] - b[i]) * (a[i] - b[i]));
  return sum;
}

/// Captions of the training pictures that are nearest to `made`.
std::vector<std::string> nearest_captions(const std::vector<TrainingPicture>& pictures,
                                          const std::vector<float>& made, int count) {
  std::vector<std::pair<double, size_t>> distances;
  for (size_t i = 0; i < pictures.size(); ++i)
    distances.emplace_back(squared_distance(pictures[i].pixels, made), i);
  std::sort(distances.begin(), distances.end());
  std::vector<std::string> captions;
  for (size_t i = 0; i < std::min(distances.size(), static_cast<size_t>(count)); ++i) {
    captions.push_back(pictures[distances[i].second].caption);
  }
  return captions;
}

bool contains(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

}  // namespace

RetrievalReport evaluate_retrieval(const PictureMaker& maker, const index::Index& index,
                                   const stepplan::Plan& plan, const RetrievalOptions& options,
                                   const std::function<void(int64_t, int64_t)>& progress) {
  const auto pictures = load_training_set(maker.run(), index, plan);
  const auto chosen = choose(pictures, options.num_captions, options.seed);
  if (chosen.empty()) throw InvalidInput("eval", "the training set has no usable picture with a caption");
  std::vector<Request> requests;
  RetrievalReport report;
  for (size_t i = 0; i < chosen.size(); ++i) {
    const auto& picture = pictures[chosen[i]];
    requests.push_back(
        {picture.caption, picture.bucket.width, picture.bucket.height, mix64(options.seed + i)});
    report.captions.push_back(picture.caption);
  }
  report.generated = sample(maker, requests, options.sampler, progress);
  report.num_captions = static_cast<int>(chosen.size());
  report.num_pictures = static_cast<int>(pictures.size());
  int hits = 0;
  int shuffled = 0;
  for (size_t i = 0; i < chosen.size(); ++i) {
    const auto near = nearest_captions(pictures, small_pixels(report.generated[i]), options.nearest);
    hits += contains(near, report.captions[i]) ? 1 : 0;
    // Shuffled prompts: a rotation by about half of the list never gives a caption to itself.
    const size_t other = (i + std::max<size_t>(1, chosen.size() / 2)) % chosen.size();
    shuffled += contains(near, report.captions[other]) ? 1 : 0;
  }
  report.top = static_cast<double>(hits) / static_cast<double>(chosen.size());
  report.top_shuffled = static_cast<double>(shuffled) / static_cast<double>(chosen.size());
  return report;
}

}  // namespace chiliad::generate
