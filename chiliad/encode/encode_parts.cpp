#include "chiliad/encode/encode_parts.h"

#include <ATen/ATen.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/base/thread_pool.h"
#include "chiliad/device/tensor.h"
#include "chiliad/encode/frozen_encoder.h"
#include "chiliad/features/part_plan.h"
#include "chiliad/io/file.h"
#include "chiliad/loader/item_loader.h"
#include "chiliad/loader/run_inputs.h"

namespace chiliad::encode {
namespace {

constexpr size_t kQueuedPictures = 64;

at::ScalarType stored_type(const spec::RunFile& run) {
  return run.encoders.dtype == "bf16" ? at::kBFloat16 : at::kFloat;
}

features::Feature to_feature(features::FeatureId id, const at::Tensor& values, at::ScalarType type) {
  const HostArray array = device::to_host(values.to(type).contiguous());
  features::Feature feature{id, array.dtype(), array.shape(), {}};
  feature.bytes.assign(array.bytes().begin(), array.bytes().end());
  return feature;
}

loader::ItemLoaderOptions item_options(const spec::RunFile& run, const index::Index& index) {
  loader::ItemLoaderOptions made;
  made.pictures = loader::picture_options(run.data);
  made.source = loader::open_source(run, index);
  return made;
}

/// Pictures of a part as they are to be shown, and why some cannot be.
struct LoadedPictures {
  std::vector<HostArray> pictures;  // by sample of the part; empty where refused
  std::vector<std::string> refusals;
};

/// The latents of a part.
class LatentParts {
 public:
  LatentParts(const spec::RunFile& run, const index::Index& index, const stepplan::Plan& plan)
      : run_(run),
        index_(index),
        plan_(plan),
        encoder_(open_picture_encoder(run)),
        items_(index, item_options(run, index)),
        pool_(static_cast<int>(run.data.loader_threads), kQueuedPictures, "encode") {}

  using Loaded = LoadedPictures;

  Loaded load(const features::PartPlan& part) {
    Loaded loaded{std::vector<HostArray>(part.samples.size()), std::vector<std::string>(part.samples.size())};
    std::vector<std::promise<void>> done(part.samples.size());
    for (size_t i = 0; i < part.samples.size(); ++i) {
      pool_.submit([&, i] {
        try {
          loaded.refusals[i] = load_one(part.samples[i], loaded.pictures[i]);
          done[i].set_value();
        } catch (...) {
          done[i].set_exception(std::current_exception());
        }
      });
    }
    std::exception_ptr error;  // all must end before the part goes
    for (auto& one : done) {
      try {
        one.get_future().get();
      } catch (...) {
        error = std::current_exception();
      }
    }
    if (error != nullptr) std::rethrow_exception(error);
    return loaded;
  }

  features::Part encode(const features::PartPlan& part, Loaded loaded) {
    features::Part made;
    std::map<int32_t, std::vector<size_t>> by_bucket;
    for (size_t i = 0; i < part.samples.size(); ++i) {
      if (loaded.refusals[i].empty()) {
        by_bucket[part.samples[i].bucket].push_back(i);
      } else {
        made.refused.emplace(local(part, i), loaded.refusals[i]);
      }
    }
    for (const auto& [bucket, members] : by_bucket) {
      for (size_t first = 0; first < members.size(); first += batch()) {
        const size_t last = std::min(members.size(), first + batch());
        encode_batch(
            part, loaded,
            {members.begin() + static_cast<ptrdiff_t>(first), members.begin() + static_cast<ptrdiff_t>(last)},
            made);
      }
    }
    std::sort(made.features.begin(), made.features.end(),
              [](const auto& a, const auto& b) { return a.id < b.id; });
    return made;
  }

 private:
  [[nodiscard]] size_t batch() const { return static_cast<size_t>(run_.encoders.batch); }
  [[nodiscard]] uint32_t local(const features::PartPlan& part, size_t i) const {
    return index_.locate(part.samples[i].sample).sample;
  }

  std::string load_one(const stepplan::Plan::Planned& sample, HostArray& picture) {
    const auto bucket = plan_.buckets()[static_cast<size_t>(sample.bucket)];
    picture = HostArray(DType::kU8, Shape{bucket.height, bucket.width, 3});
    stepplan::Item item;
    item.sample = sample.sample;
    item.bucket = sample.bucket;
    return items_.load_alone(item, bucket, picture.bytes());
  }

  /// An encoder in Python may make of a picture what it likes.
  void check_size(const at::Tensor& latents, int32_t number) const {
    const auto bucket = plan_.buckets()[static_cast<size_t>(number)];
    const int64_t side = run_.model.latent_pixels;
    const int64_t rows = latents.size(latents.dim() - 2);
    const int64_t columns = latents.size(latents.dim() - 1);
    if (rows * side == bucket.height && columns * side == bucket.width) return;
    throw InvalidInput(
        "model.latent_pixels",
        fmt::format("expected the sides of the pictures over those of their latents, {} x {} over {} x "
                    "{} here, got {}. Correct it",
                    bucket.width, bucket.height, columns, rows, side));
  }

  void encode_batch(const features::PartPlan& part, const Loaded& loaded, const std::vector<size_t>& members,
                    features::Part& made) {
    std::vector<at::Tensor> pictures;
    for (const size_t i : members) pictures.push_back(device::as_tensor(loaded.pictures[i]));
    const at::Tensor stacked = at::stack(pictures);
    add(part, members, encoder_->encode(stacked), false, made);
    if (run_.data.flip) add(part, members, encoder_->encode(stacked.flip(2)), true, made);
  }

  void add(const features::PartPlan& part, const std::vector<size_t>& members, const at::Tensor& latents,
           bool flipped, features::Part& made) {
    check_size(latents, part.samples[members[0]].bucket);
    for (size_t i = 0; i < members.size(); ++i) {
      made.features.push_back(to_feature({local(part, members[i]), flipped}, latents[static_cast<int64_t>(i)],
                                         stored_type(run_)));
    }
  }

  const spec::RunFile& run_;
  const index::Index& index_;
  const stepplan::Plan& plan_;
  std::unique_ptr<PictureEncoder> encoder_;
  loader::ItemLoader items_;
  ThreadPool pool_;
};

/// The captions of a part, encoded.
class TextParts {
 public:
  TextParts(const spec::RunFile& run, const index::Index& index, const stepplan::Plan& plan)
      : run_(run),
        plan_(plan),
        encoder_(open_caption_encoder(run)),
        items_(index, item_options(run, index)) {}

  struct Caption {
    uint32_t number = 0;
    std::string text;
    std::string refusal;
  };
  using Loaded = std::vector<Caption>;

  Loaded load(const features::PartPlan& part) {
    Loaded captions;
    for (const auto& sample : part.samples) {
      for (const uint32_t number : plan_.captions_of(sample.sample)) {
        auto read = items_.read_caption(sample.sample, number);
        captions.push_back({number, std::move(read.text), std::move(read.refusal)});
      }
    }
    return captions;
  }

  features::Part encode(const features::PartPlan&, Loaded captions) {
    features::Part made;
    std::vector<std::pair<int64_t, size_t>> order;  // by length, then number
    for (size_t i = 0; i < captions.size(); ++i) {
      if (captions[i].refusal.empty()) {
        order.emplace_back(encoder_->count(captions[i].text), i);
      } else {
        made.refused.emplace(captions[i].number, captions[i].refusal);
      }
    }
    std::sort(order.begin(), order.end());
    const auto batch = static_cast<size_t>(run_.encoders.batch);
    for (size_t first = 0; first < order.size(); first += batch) {
      std::vector<uint32_t> numbers;
      std::vector<std::string> texts;
      for (size_t i = first; i < std::min(order.size(), first + batch); ++i) {
        numbers.push_back(captions[order[i].second].number);
        texts.push_back(captions[order[i].second].text);
      }
      add(numbers, texts, made);
    }
    std::sort(made.features.begin(), made.features.end(),
              [](const auto& a, const auto& b) { return a.id < b.id; });
    return made;
  }

  features::Part empty_text() {
    features::Part made;
    add({0}, {""}, made);
    return made;
  }

 private:
  void add(const std::vector<uint32_t>& numbers, const std::vector<std::string>& texts,
           features::Part& made) {
    const auto encoded = encoder_->encode(texts);
    for (size_t i = 0; i < encoded.size(); ++i) {
      made.features.push_back(to_feature({numbers[i], false}, encoded[i].tokens, stored_type(run_)));
      if (encoded[i].pooled.defined())
        made.features.push_back(to_feature({numbers[i], true}, encoded[i].pooled, stored_type(run_)));
    }
  }

  const spec::RunFile& run_;
  const stepplan::Plan& plan_;
  std::unique_ptr<CaptionEncoder> encoder_;
  loader::ItemLoader items_;
};

template <typename Parts>
void make_parts(Parts& maker, const std::vector<const features::PartPlan*>& parts,
                const std::function<void(const features::PartPlan&, const features::Part&)>& write) {
  std::future<typename Parts::Loaded> next;
  const auto start = [&](size_t i) {
    if (i < parts.size())
      next = std::async(std::launch::async, [&maker, part = parts[i]] { return maker.load(*part); });
  };
  start(0);
  for (size_t i = 0; i < parts.size(); ++i) {
    auto loaded = next.get();
    start(i + 1);
    write(*parts[i], maker.encode(*parts[i], std::move(loaded)));
  }
}

}  // namespace

void encode_parts(const spec::RunFile& run, const index::Index& index, features::Kind kind, Share share,
                  const std::function<void(int64_t)>& before_write) {
  const stepplan::Plan plan(index, run.data, run.run.seed, [](uint32_t, uint32_t) { return 1U; });
  const auto identity = features::identity_of(run, kind);
  const auto folder = features::column_folder(index, identity);
  const auto all = features::plan_parts(index, plan);
  const auto path = [&](const features::PartPlan& part) {
    return features::part_path(folder, index.manifest().shards[part.shard].content, part.number);
  };
  std::vector<const features::PartPlan*> parts;
  for (size_t i = 0; i < all.size(); ++i) {
    if (static_cast<int>(i) % share.size != share.rank || io::stat_file(path(all[i])).has_value()) continue;
    parts.push_back(&all[i]);
  }
  int64_t made = 0;
  const auto write = [&](const features::PartPlan& part, const features::Part& content) {
    io::make_folders(path(part).parent_path());
    if (before_write) before_write(made++);
    features::write_part(path(part), identity.key(), content);
  };
  if (kind == features::Kind::kLatents) {
    if (parts.empty()) return;
    LatentParts maker(run, index, plan);
    make_parts(maker, parts, write);
    return;
  }
  const auto empty = features::empty_text_path(folder);
  const bool makes_empty = share.rank == 0 && !io::stat_file(empty).has_value();
  if (parts.empty() && !makes_empty) return;
  TextParts maker(run, index, plan);
  if (makes_empty) {
    io::make_folders(folder);
    features::write_part(empty, identity.key(), maker.empty_text());
  }
  make_parts(maker, parts, write);
}

}  // namespace chiliad::encode
