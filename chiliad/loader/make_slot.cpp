#include "chiliad/loader/make_slot.h"

#include <algorithm>
#include <array>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/hash.h"
#include "chiliad/base/rng.h"

namespace chiliad::loader {
namespace {

constexpr int64_t kAlignment = 64;

int64_t aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// What an array of a batch is to be.
struct ArraySpec {
  HostArray Batch::*array = nullptr;
  DType dtype = DType::kU8;
  Shape shape{0};
  [[nodiscard]] int64_t num_bytes() const { return aligned(shape.count() * dtype_bytes(dtype)); }
};
using ArraySpecs = std::vector<ArraySpec>;

int64_t longest_caption(const std::vector<stepplan::Item>& items) {
  int64_t longest = 0;
  for (const stepplan::Item& item : items) longest = std::max<int64_t>(longest, item.num_tokens);
  return longest;
}

ArraySpec feature_room(HostArray Batch::*array, const features::FeatureShape& feature, int64_t count) {
  std::vector<int64_t> sizes{count};
  for (int axis = 0; axis < feature.shape.rank(); ++axis) sizes.push_back(feature.shape[axis]);
  return {array, feature.dtype, Shape(sizes)};
}

/// Pictures of any shapes one after another.
ArraySpecs picture_pack(const stepplan::MicroBatch& slot, const std::vector<stepplan::Bucket>& buckets,
                        const FeatureColumns& columns) {
  const auto count = static_cast<int64_t>(slot.items.size());
  int64_t values = 0;
  for (const stepplan::Item& item : slot.items) {
    const stepplan::Bucket bucket = buckets[static_cast<size_t>(item.bucket)];
    values += columns.latents->latents_of(bucket.width, bucket.height).shape.count();
  }
  ArraySpecs specs{{&Batch::latents, columns.latents->summary().dtype, Shape{values}},
                   {&Batch::tokens, DType::kI32, Shape{count, columns.text == nullptr ? 1 : 0}}};
  if (columns.text == nullptr) return specs;
  const auto feature = columns.text->text_of(slot.num_tokens());
  specs.push_back({&Batch::text, feature.dtype, feature.shape});
  if (const auto pooled = columns.text->pooled())
    specs.push_back(feature_room(&Batch::pooled, *pooled, count));
  return specs;
}

ArraySpecs picture_batch(const stepplan::MicroBatch& slot, stepplan::Bucket bucket,
                         const FeatureColumns& columns) {
  const auto count = static_cast<int64_t>(slot.items.size());
  const int64_t longest = longest_caption(slot.items);
  if (columns.latents == nullptr) {
    return {{&Batch::pixels, DType::kU8, Shape{count, bucket.height, bucket.width, 3}},
            {&Batch::tokens, DType::kI32, Shape{count, longest}}};
  }
  ArraySpecs specs{
      feature_room(&Batch::latents, columns.latents->latents_of(bucket.width, bucket.height), count),
      {&Batch::tokens, DType::kI32, Shape{count, columns.text == nullptr ? 1 : 0}}};
  if (columns.text == nullptr) return specs;
  specs.push_back(feature_room(&Batch::text, columns.text->text_of(longest), count));
  if (const auto pooled = columns.text->pooled())
    specs.push_back(feature_room(&Batch::pooled, *pooled, count));
  return specs;
}

ArraySpecs arrays_of(const stepplan::MicroBatch& slot, const std::vector<stepplan::Bucket>& buckets,
                     const LoaderOptions& options) {
  if (options.documents != nullptr || options.conversations != nullptr) {
    const Shape row{slot.num_tokens()};
    ArraySpecs specs{{&Batch::tokens, DType::kI32, row}, {&Batch::targets, DType::kI32, row}};
    if (options.conversations == nullptr) return specs;
    int64_t tiles = 0;
    for (const stepplan::Item& item : slot.items) tiles += item.num_tiles;
    const int64_t side = options.conversations->view.side;
    specs.push_back({&Batch::tiles, DType::kU8, Shape{tiles, side, side, 3}});
    return specs;
  }
  if (options.pack.packs_pictures()) return picture_pack(slot, buckets, options.columns);
  return picture_batch(slot, buckets[static_cast<size_t>(slot.bucket)], options.columns);
}

void add_row_borders(const std::vector<stepplan::Item>& items, Batch& batch) {
  batch.cu_seqlens.push_back(0);
  for (const stepplan::Item& item : items)
    batch.cu_seqlens.push_back(batch.cu_seqlens.back() + static_cast<int32_t>(item.num_tokens));
}

void add_tile_borders(const std::vector<stepplan::Item>& items, Batch& batch) {
  batch.cu_tiles.push_back(0);
  for (const stepplan::Item& item : items)
    batch.cu_tiles.push_back(batch.cu_tiles.back() + static_cast<int64_t>(item.num_tiles));
  batch.pictures.resize(items.size());
}

void add_pack_borders(const std::vector<stepplan::Item>& items, const std::vector<stepplan::Bucket>& buckets,
                      const FeatureColumns& columns, Batch& batch) {
  batch.cu_latents.push_back(0);
  batch.cu_text.push_back(0);
  for (const stepplan::Item& item : items) {
    const stepplan::Bucket bucket = buckets[static_cast<size_t>(item.bucket)];
    batch.shapes.push_back(bucket);
    batch.cu_latents.push_back(batch.cu_latents.back() +
                               columns.latents->latents_of(bucket.width, bucket.height).shape.count());
    batch.cu_text.push_back(batch.cu_text.back() + item.num_tokens);
  }
}

ItemPlace place_in_pack(Batch& batch, size_t i) {
  const auto rows = [i](HostArray& array, const std::vector<int64_t>& begins) {
    const size_t row = begins.back() == 0 ? 0 : array.bytes().size() / static_cast<size_t>(begins.back());
    return array.bytes().subspan(static_cast<size_t>(begins[i]) * row,
                                 static_cast<size_t>(begins[i + 1] - begins[i]) * row);
  };
  const auto tokens = batch.tokens.as<int32_t>();
  const size_t length = tokens.size() / batch.items.size();
  const size_t pooled = batch.pooled.bytes().size() / batch.items.size();
  return {.pixels = {},
          .tokens = tokens.subspan(i * length, length),
          .token_count = &batch.token_counts[i],
          .latents = rows(batch.latents, batch.cu_latents),
          .text = rows(batch.text, batch.cu_text),
          .pooled = batch.pooled.bytes().subspan(i * pooled, pooled)};
}

std::span<const std::byte> without_trailing_zeros(std::span<const std::byte> bytes) {
  while (!bytes.empty() && bytes.back() == std::byte{0}) bytes = bytes.first(bytes.size() - 1);
  return bytes;
}

}  // namespace

int64_t slot_bytes(const stepplan::MicroBatch& slot, const std::vector<stepplan::Bucket>& buckets,
                   const LoaderOptions& options) {
  int64_t bytes = 0;
  for (const ArraySpec& spec : arrays_of(slot, buckets, options)) bytes += spec.num_bytes();
  return bytes;
}

Batch make_slot(stepplan::MicroBatch&& slot, const std::vector<stepplan::Bucket>& buckets,
                const LoaderOptions& options, std::shared_ptr<std::byte> memory) {
  Batch batch;
  std::byte* at = memory.get();
  for (const ArraySpec& spec : arrays_of(slot, buckets, options)) {
    batch.*spec.array = HostArray::view(spec.dtype, spec.shape, at);
    at += spec.num_bytes();
  }
  batch.memory = std::move(memory);
  batch.token_counts.assign(slot.items.size(), 0);
  batch.content.assign(slot.items.size(), 0);
  if (options.documents != nullptr || options.conversations != nullptr) {
    add_row_borders(slot.items, batch);
    if (options.conversations != nullptr) add_tile_borders(slot.items, batch);
  } else if (options.pack.packs_pictures()) {
    add_pack_borders(slot.items, buckets, options.columns, batch);
  } else {
    batch.bucket = buckets[static_cast<size_t>(slot.bucket)];
  }
  batch.items = std::move(slot.items);
  return batch;
}

ItemPlace place_of(Batch& batch, size_t i) {
  if (batch.is_row()) {
    const auto first = static_cast<size_t>(batch.cu_seqlens[i]);
    const auto count = static_cast<size_t>(batch.cu_seqlens[i + 1]) - first;
    ItemPlace place{{},
                    batch.tokens.as<int32_t>().subspan(first, count),
                    &batch.token_counts[i],
                    batch.targets.as<int32_t>().subspan(first, count)};
    if (batch.cu_tiles.empty()) return place;
    place.pictures = &batch.pictures[i];
    if (batch.cu_tiles.back() == 0) return place;
    const size_t tile = batch.tiles.bytes().size() / static_cast<size_t>(batch.cu_tiles.back());
    place.tiles =
        batch.tiles.bytes().subspan(static_cast<size_t>(batch.cu_tiles[i]) * tile,
                                    static_cast<size_t>(batch.cu_tiles[i + 1] - batch.cu_tiles[i]) * tile);
    return place;
  }
  if (batch.packs_pictures()) return place_in_pack(batch, i);
  const auto own = [&](HostArray& array) {
    const size_t bytes = array.bytes().size() / batch.items.size();
    return array.bytes().subspan(i * bytes, bytes);
  };
  const auto tokens = batch.tokens.as<int32_t>();
  const size_t length = tokens.size() / batch.items.size();
  return {own(batch.pixels),      tokens.subspan(i * length, length),
          &batch.token_counts[i], {},
          own(batch.latents),     own(batch.text),
          own(batch.pooled)};
}

ItemCopy::ItemCopy(const Batch& batch, size_t i) {
  const ItemPlace there = place_of(const_cast<Batch&>(batch), i);  // only its sizes are looked at
  const auto bytes = [&](std::span<std::byte> like) -> std::span<std::byte> {
    return bytes_.emplace_back(like.size());
  };
  const auto words = [&](std::span<int32_t> like) -> std::span<int32_t> {
    return words_.emplace_back(like.size());
  };
  place_ = {.pixels = bytes(there.pixels),
            .tokens = words(there.tokens),
            .token_count = &token_count_,
            .targets = words(there.targets),
            .latents = bytes(there.latents),
            .text = bytes(there.text),
            .pooled = bytes(there.pooled),
            .tiles = bytes(there.tiles),
            .pictures = there.pictures == nullptr ? nullptr : &pictures_};
}

uint64_t content_digest(const ItemPlace& place) {
  const auto words = static_cast<size_t>(std::max(*place.token_count, 0));
  const auto tokens = std::as_bytes(place.tokens.first(std::min(words, place.tokens.size())));
  const std::array<uint64_t, 6> parts{hash64(std::span<const std::byte>(place.pixels)),
                                      hash64(tokens),
                                      hash64(std::as_bytes(place.targets)),
                                      hash64(std::span<const std::byte>(place.latents)),
                                      hash64(without_trailing_zeros(place.text)),
                                      hash64(std::span<const std::byte>(place.pooled))};
  const uint64_t digest = hash64(std::as_bytes(std::span(parts)));
  // Only where used: what was recorded before there were tiles stays.
  return place.tiles.empty() ? digest : mix64(digest ^ hash64(std::span<const std::byte>(place.tiles)));
}

uint64_t consumed_digest(const RankStep& step) {
  uint64_t sum = 0;
  for (const Batch& batch : step.slots) {
    for (size_t i = 0; i < batch.items.size(); ++i) {
      const stepplan::Item& item = batch.items[i];
      const std::array<uint64_t, 3> parts{static_cast<uint64_t>(item.sample), item.position,
                                          batch.content[i]};
      sum += hash64(std::as_bytes(std::span(parts)));
    }
  }
  return sum;
}

}  // namespace chiliad::loader
