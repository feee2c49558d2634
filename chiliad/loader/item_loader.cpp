#include "chiliad/loader/item_loader.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "chiliad/base/error.h"
#include "chiliad/base/log.h"
#include "chiliad/base/planted.h"
#include "chiliad/base/rng.h"
#include "chiliad/image/decode_fit.h"
#include "chiliad/index/caption_text.h"
#include "chiliad/loader/batch.h"
#include "chiliad/loader/item_cost.h"

namespace chiliad::loader {

std::string part_place(const index::Index& index, int64_t sample, int32_t caption) {
  const auto held = index.shard_of(sample);
  const index::Shard& shard = *held;
  const auto image = index.image_part(sample);
  const index::Part* part = image.get();
  if (part == nullptr && caption >= 0)
    part = &shard.parts.at(shard.captions.at(static_cast<size_t>(caption)).part);
  if (part == nullptr) return "no file";
  return fmt::format("{} bytes {} to {}", shard.files.at(part->file).path, part->offset,
                     part->offset + part->length);
}

void clear_item(const ItemPlace& place) {
  if (!place.targets.empty()) {
    std::fill(place.tokens.begin(), place.tokens.end(), 0);
    std::fill(place.targets.begin(), place.targets.end(), kNoTarget);
    std::fill(place.tiles.begin(), place.tiles.end(), std::byte{0});
    if (place.pictures != nullptr) place.pictures->clear();
    *place.token_count = static_cast<int32_t>(place.tokens.size());
    return;
  }
  for (const auto bytes : {place.pixels, place.latents, place.text, place.pooled})
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
  *place.token_count = 1;
  if (place.tokens.empty()) return;
  std::fill(place.tokens.begin(), place.tokens.end(), text::ByteTokenizer::kPad);
  place.tokens[0] = text::ByteTokenizer::kNull;
}

ItemLoader::ItemLoader(const index::Index& index, const ItemLoaderOptions& options)
    : index_(index),
      options_(options),
      tokenizer_(options.max_tokens),
      reader_(index, options.source),
      cache_(options.cache_bytes) {}

std::string ItemLoader::load(const stepplan::Item& item, stepplan::Bucket bucket, const ItemPlace& place,
                             ItemWatch* watch) {
  clear_item(place);
  if (item.weight == 0.0F) return "";
  std::string refusal;
  if (options_.conversations != nullptr) {
    refusal = load_conversation(item, place, watch);
  } else if (options_.documents != nullptr) {
    refusal = load_document(item, place);
  } else {
    refusal = options_.columns.latents != nullptr ? load_latents(item, place)
                                                  : load_picture(item, bucket, place.pixels, watch);
    if (watch != nullptr) watch->enter(ItemPhase::kWords);
    if (refusal.empty()) refusal = load_words(item, place);
  }
  if (!refusal.empty()) {
    clear_item(place);
    refusal = fmt::format("{}: {}", index_.key(item.sample), refusal);
  }
  return refusal;
}

std::string ItemLoader::load_alone(const stepplan::Item& item, stepplan::Bucket bucket,
                                   std::span<std::byte> pixels) {
  stepplan::Item alone = item;
  alone.caption = -1;
  int32_t count = 0;
  return load(alone, bucket, {.pixels = pixels, .tokens = {}, .token_count = &count});
}

std::string ItemLoader::load_words(const stepplan::Item& item, const ItemPlace& place) {
  if (item.caption < 0) return "";
  if (options_.columns.text != nullptr) return load_text(item, place);
  return options_.classes > 0 ? load_class(item, place) : load_caption(item, place);
}

std::string ItemLoader::load_latents(const stepplan::Item& item, const ItemPlace& place) {
  const auto [shard, sample] = index_.locate(item.sample);
  features_read_ += static_cast<int64_t>(place.latents.size());
  return options_.columns.latents->read(shard, {sample, item.flip}, place.latents);
}

std::string ItemLoader::load_text(const stepplan::Item& item, const ItemPlace& place) {
  const auto& column = *options_.columns.text;
  const uint32_t shard = index_.locate(item.sample).shard;
  const auto caption = static_cast<uint32_t>(item.caption);
  const auto* entry = column.find(shard, {caption, false});
  const size_t bytes = entry == nullptr ? 0 : static_cast<size_t>(entry->num_bytes);
  CHILIAD_CHECK_LE(bytes, place.text.size());
  std::string refusal = column.read(shard, {caption, false}, place.text.first(bytes));
  features_read_ += static_cast<int64_t>(bytes + place.pooled.size());
  if (refusal.empty() && !place.pooled.empty()) refusal = column.read(shard, {caption, true}, place.pooled);
  *place.token_count = static_cast<int32_t>(item.num_tokens);
  return refusal;
}

std::string ItemLoader::load_class(const stepplan::Item& item, const ItemPlace& place) {
  const CaptionText caption = read_caption(item.sample, static_cast<uint32_t>(item.caption));
  if (!caption.refusal.empty()) return caption.refusal;
  int64_t number = -1;
  const char* end = caption.text.data() + caption.text.size();
  const auto parsed = std::from_chars(caption.text.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end || number < 0 || number >= options_.classes) {
    return fmt::format("caption: expected one that is the number of a class below {}, got '{}'",
                       options_.classes, caption.text.substr(0, 40));
  }
  place.tokens[0] = static_cast<int32_t>(number);
  return "";
}

double ItemLoader::cost_seconds(const stepplan::Item& item) const {
  if (item.weight == 0.0F || options_.documents != nullptr || options_.columns.latents != nullptr) return 0.0;
  double seconds = 0.0;
  const auto [shard, sample] = index_.locate(item.sample);
  const auto held = index_.shard(shard);
  for (const index::Part* picture : picture_parts(*held, held->samples[sample]))
    seconds += decode_seconds(*picture);
  return seconds;
}

int64_t ItemLoader::payload_bytes(const stepplan::Item& item) const {
  if (item.weight == 0.0F) return 0;
  if (options_.columns.latents != nullptr) return feature_bytes(item);
  const auto [number, sample] = index_.locate(item.sample);
  const auto shard = index_.shard(number);
  int64_t bytes = 0;
  if (options_.documents == nullptr)
    for (const index::Part* picture : picture_parts(*shard, shard->samples[sample]))
      bytes += static_cast<int64_t>(picture->length);
  if (item.caption >= 0)
    bytes += static_cast<int64_t>(
        shard->parts.at(shard->captions.at(static_cast<size_t>(item.caption)).part).length);
  return bytes;
}

std::string ItemLoader::load_picture(const stepplan::Item& item, stepplan::Bucket bucket,
                                     std::span<std::byte> pixels, ItemWatch* watch) {
  const PictureKey key{item.sample, item.bucket, item.crop_x, item.crop_y, item.flip};
  if (cache_.copy_to(key, pixels)) {
    ++cache_hits_;
  } else {
    std::string refusal = decode_picture(item, bucket, pixels, watch);
    if (!refusal.empty()) return refusal;
    cache_.put(key, pixels);
  }
  Rng rng({item.draw_key, static_cast<uint64_t>(Draw::kJitter)});
  image::jitter(options_.pictures.jitter, rng, pixels);
  return "";
}

std::string ItemLoader::decode_picture(const stepplan::Item& item, stepplan::Bucket bucket,
                                       std::span<std::byte> pixels, ItemWatch* watch) {
  const auto part = index_.image_part(item.sample);
  CHILIAD_CHECK(part != nullptr, "sample {} has no image", item.sample);
  const PartBytes read = reader_.read(*index_.shard_of(item.sample), *part);
  if (!read.refusal.empty()) return read.refusal;
  if (watch != nullptr) watch->enter(ItemPhase::kDecoding);
  image::FitOptions options;
  options.fit = [&](int32_t width, int32_t height) {
    return image::cover_fit(width, height, bucket.width, bucket.height, static_cast<double>(item.crop_x),
                            static_cast<double>(item.crop_y));
  };
  options.mirrored = item.flip;
  options.dct_margin = options_.pictures.dct_margin;
  options.decode.background = options_.pictures.background;
  std::string profile_note;
  if (options_.pictures.to_srgb) {
    options.decode.to_srgb = &to_srgb_;
    options.decode.profile_note = &profile_note;
  }
  const std::string refusal = image::decode_fit(read.bytes, options, pixels);
  if (!profile_note.empty()) note_profile(item, profile_note);
  return refusal.empty() ? "" : "picture: " + refusal;
}

void ItemLoader::note_profile(const stepplan::Item& item, const std::string& why) {
  constexpr int64_t kMostLines = 10;
  const int64_t before = profiles_left_.fetch_add(1);
  if (before >= kMostLines) return;
  log_warn("{}: data.to_srgb: {}: its colours are taken as they are stored{}", index_.key(item.sample), why,
           before + 1 == kMostLines ? ". Later ones are not named" : "");
}

int64_t ItemLoader::feature_bytes(const stepplan::Item& item) const {
  const auto [shard, sample] = index_.locate(item.sample);
  int64_t bytes = 0;
  const auto add = [&](const std::shared_ptr<const features::Column>& column, features::FeatureId id) {
    const auto* entry = column == nullptr ? nullptr : column->find(shard, id);
    if (entry != nullptr) bytes += entry->num_bytes;
  };
  add(options_.columns.latents, {sample, item.flip});
  if (item.caption < 0) return bytes;
  add(options_.columns.text, {static_cast<uint32_t>(item.caption), false});
  add(options_.columns.text, {static_cast<uint32_t>(item.caption), true});
  if (options_.classes > 0) {
    const auto columns = index_.shard_of(item.sample);
    bytes += static_cast<int64_t>(
        columns->parts.at(columns->captions.at(static_cast<size_t>(item.caption)).part).length);
  }
  return bytes;
}

ItemLoader::CaptionText ItemLoader::read_caption(int64_t sample, uint32_t number) {
  const auto shard = index_.shard_of(sample);
  const index::Caption& caption = shard->captions.at(number);
  const index::Part& part = shard->parts.at(caption.part);
  const PartBytes read = reader_.read(*shard, part);
  if (!read.refusal.empty()) return {"", read.refusal};
  if (size_t{caption.offset} + caption.length > read.bytes.size()) {
    throw CorruptData(index_.key(sample), "index: a caption reaches beyond its part. Index the data again");
  }
  const std::string_view text(reinterpret_cast<const char*>(read.bytes.data()) + caption.offset,
                              caption.length);
  text::LineDocument document = index::caption_text(part.media, text);
  if (!document.refusal.empty()) document.refusal = "caption: " + document.refusal;
  return {std::move(document.text), std::move(document.refusal)};
}

void ItemLoader::check_count(const stepplan::Item& item, size_t found) const {
  if (found == item.num_tokens) return;
  throw CorruptData(
      index_.key(item.sample),
      fmt::format("token column: expected {} tokens of caption {}, got {}. Make the token columns with "
                  "the tokenizer of this run",
                  item.num_tokens, item.caption, found));
}

std::string ItemLoader::load_caption(const stepplan::Item& item, const ItemPlace& place) {
  const CaptionText caption = read_caption(item.sample, static_cast<uint32_t>(item.caption));
  if (!caption.refusal.empty()) return caption.refusal;
  const std::vector<int32_t> ids = tokenizer_.encode(caption.text);
  check_count(item, ids.size());
  std::copy(ids.begin(), ids.end(), place.tokens.begin());
  std::fill(place.tokens.begin() + static_cast<ptrdiff_t>(ids.size()), place.tokens.end(),
            text::ByteTokenizer::kPad);
  *place.token_count = static_cast<int32_t>(ids.size());
  return "";
}

std::string ItemLoader::load_document(const stepplan::Item& item, const ItemPlace& place) {
  CHILIAD_CHECK_GE(item.caption, 0);
  const CaptionText document = read_caption(item.sample, static_cast<uint32_t>(item.caption));
  if (!document.refusal.empty()) return document.refusal;
  const std::vector<int32_t> ids = options_.documents->encode(document.text);
  const size_t positions =
      std::min(std::max<size_t>(ids.size(), 1) - 1, static_cast<size_t>(options_.sequence_length));
  check_count(item, positions);
  CHILIAD_CHECK_EQ(place.tokens.size(), positions);
  std::copy_n(ids.begin(), positions, place.tokens.begin());
  const int shift = planted_bug("targets_not_shifted") ? 0 : 1;
  std::copy_n(ids.begin() + shift, positions, place.targets.begin());
  return "";
}

std::string ItemLoader::load_conversation(const stepplan::Item& item, const ItemPlace& place,
                                          ItemWatch* watch) {
  const Conversations& how = *options_.conversations;
  CHILIAD_CHECK_GE(item.caption, 0);
  const CaptionText record = read_caption(item.sample, static_cast<uint32_t>(item.caption));
  if (!record.refusal.empty()) return record.refusal;
  const auto [number, sample] = index_.locate(item.sample);
  const auto shard = index_.shard(number);
  auto parts = picture_parts(*shard, shard->samples[sample]);
  std::vector<image::VisionSize> sizes;
  std::vector<int64_t> positions;
  for (const index::Part* part : parts) {
    sizes.push_back(image::vision_size(how.view, static_cast<int32_t>(part->width),
                                       static_cast<int32_t>(part->height),
                                       static_cast<int64_t>(parts.size())));
    positions.push_back(sizes.back().positions);
  }
  const auto encoded = how.encoder->encode(record.text, positions);
  if (!encoded.refusal.empty()) return encoded.refusal;
  const size_t count = std::max<size_t>(encoded.ids.size(), 1) - 1;
  check_count(item, count);
  std::copy_n(encoded.ids.begin(), count, place.tokens.begin());
  for (size_t i = 0; i < count; ++i)
    place.targets[i] = encoded.supervised[i + 1] != 0 ? encoded.ids[i + 1] : kNoTarget;
  int64_t tile = 0;
  for (size_t p = 0; p < encoded.pictures.size(); ++p) {
    const text::PictureRun& run = encoded.pictures[p];
    place.pictures->push_back({run.first, run.count, tile, sizes[p].tiles});
    tile += sizes[p].tiles;
  }
  CHILIAD_CHECK_EQ(place.tiles.size(), static_cast<size_t>(tile * how.view.tile_bytes()));
  return load_tiles(*shard, parts, place, watch);
}

std::string ItemLoader::load_tiles(const index::Shard& shard, const std::vector<const index::Part*>& parts,
                                   const ItemPlace& place, ItemWatch* watch) {
  const image::VisionView& view = options_.conversations->view;
  image::DecodeOptions decode;
  decode.background = options_.pictures.background;
  const auto& spans = *place.pictures;
  for (size_t p = 0; p < spans.size(); ++p) {
    const auto refusal = [&](const std::string& why) {
      return fmt::format("picture {} of {}: {}", p + 1, parts.size(), why);
    };
    const PartBytes read = reader_.read(shard, *parts[p]);
    if (!read.refusal.empty()) return refusal(read.refusal);
    if (watch != nullptr) watch->enter(ItemPhase::kDecoding);
    const auto slot = place.tiles.subspan(static_cast<size_t>(spans[p].first_tile * view.tile_bytes()),
                                          static_cast<size_t>(spans[p].num_tiles * view.tile_bytes()));
    const std::string why =
        image::vision_tiles(view, read.bytes, static_cast<int64_t>(parts.size()), decode, slot);
    if (!why.empty()) return refusal(why);
    if (watch != nullptr) watch->enter(ItemPhase::kReading);
  }
  return "";
}

}  // namespace chiliad::loader
