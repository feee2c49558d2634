#include "chiliad/dataset/detail/make_sample.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/dataset/detail/near_duplicates.h"
#include "chiliad/dataset/detail/read_part.h"
#include "chiliad/image/encode.h"
#include "chiliad/image/image.h"
#include "chiliad/image/resize.h"
#include "chiliad/image/srgb.h"
#include "chiliad/image/transcode.h"
#include "chiliad/index/caption_text.h"
#include "chiliad/text/byte_tokenizer.h"

namespace chiliad::dataset::detail {
namespace {

using index::MediaType;
using Json = nlohmann::ordered_json;

const char* extension_of(image::Format format) {
  switch (format) {
    case image::Format::kJpeg:
      return "jpg";
    case image::Format::kWebp:
      return "webp";
    case image::Format::kGif:
      return "gif";
    case image::Format::kBmp:
      return "bmp";
    default:
      return "png";
  }
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

/// 1 where the picture is small enough.
double scale_of(int64_t width, int64_t height, const TarOptions& options) {
  double scale = 1.0;
  const auto limit = [&](int64_t wanted, int64_t side) {
    if (wanted > 0 && side > wanted)
      scale = std::min(scale, static_cast<double>(wanted) / static_cast<double>(side));
  };
  limit(options.longest_side, std::max(width, height));
  limit(options.shortest_side, std::min(width, height));
  return scale;
}

HostArray scaled(const HostArray& picture, double scale) {
  const auto side = [&](int axis) {
    const auto pixels = std::lround(static_cast<double>(picture.shape()[axis]) * scale);
    return static_cast<int32_t>(std::max(pixels, 1L));
  };
  return image::resize(picture, side(1), side(0), image::Filter::kBicubic);
}

}  // namespace

void drop(MadeSample& made, const char* kind, std::string reason) {
  made.members.clear();
  made.dropped = kind;
  made.reason = std::move(reason);
}

void add_picture(std::vector<std::byte> bytes, const TarOptions& options, MadeSample& made) {
  const auto info = image::probe(bytes);
  const auto picture = image::decode(bytes, {});
  if (!info || !picture) return drop(made, "image", !info ? info.reason : picture.reason);
  if (options.duplicate_bits >= 0) made.hash = difference_hash(*picture.value);
  const bool is_jpeg = info.value->format == image::Format::kJpeg;
  const double scale = scale_of(info.value->width, info.value->height, options);
  if (scale < 1.0) {
    const HostArray small = scaled(*picture.value, scale);
    made.resized = true;
    const auto profile = image::rgb_profile(bytes, *info.value);
    made.members.push_back(is_jpeg ? Member{"jpg", image::encode_jpeg(small, options.quality, profile)}
                                   : Member{"png", image::encode_png(small, profile)});
    return;
  }
  if (options.baseline && is_jpeg && (info.value->flags & image::kProgressive) != 0) {
    auto baseline = image::to_baseline_jpeg(bytes);
    made.transcoded = static_cast<bool>(baseline);
    if (baseline) bytes = std::move(*baseline.value);
  }
  made.members.push_back({extension_of(info.value->format), std::move(bytes)});
}

void add_captions(const std::vector<std::string>& captions, MadeSample& made) {
  if (captions.size() == 1) {
    made.members.push_back({"txt", bytes_of(captions.front())});
  } else {
    made.members.push_back({"json", bytes_of(json_text(Json{{"caption", captions}}))});
  }
}

Row SampleMaker::row_of(int64_t sample) const {
  const auto held = index_.shard_of(sample);
  const index::Shard& shard = *held;
  const index::Sample& own = shard.samples[index_.locate(sample).sample];
  Row row{own.num_captions, index_.image_part(sample).get(), 0, held};
  for (uint32_t c = own.first_caption; c < own.first_caption + own.num_captions; ++c)
    row.caption_bytes += shard.captions[c].length;
  return row;
}

void SampleMaker::add_text(int64_t sample, MadeSample& made) const {
  const auto held = index_.shard_of(sample);
  const index::Shard& shard = *held;
  const index::Sample own = index_.sample(sample);
  std::vector<std::string> captions;
  for (uint32_t c = own.first_caption; c < own.first_caption + own.num_captions; ++c) {
    const index::Caption& caption = shard.captions[c];
    const index::Part& part = shard.parts[caption.part];
    const auto bytes = read_part(index_, shard, part);
    const std::string_view stored(reinterpret_cast<const char*>(bytes.data()) + caption.offset,
                                  caption.length);
    auto text = index::caption_text(part.media, stored);
    if (!text.refusal.empty()) return drop(made, "caption", text.refusal);
    static_cast<void>(text::repair_utf8(text.text));
    captions.push_back(std::move(text.text));
  }
  add_captions(captions, made);
  if (captions.size() != 1) return;
  const bool whole_json = index_.manifest().layout == "webdataset";  // elsewhere such a part is a row
  for (uint32_t p = own.first_part; whole_json && p < own.first_part + own.num_parts; ++p) {
    if (shard.parts[p].media != MediaType::kJson) continue;
    made.members.push_back({"json", read_part(index_, shard, shard.parts[p])});
    return;
  }
}

MadeSample SampleMaker::make(int64_t sample) const {
  MadeSample made;
  const Row row = row_of(sample);
  if (row.image == nullptr || (index_.sample(sample).flags & index::kBadImage) != 0) {
    drop(made, "image", "has no picture that can be used");
  } else if (row.num_captions == 0) {
    drop(made, "caption", "has no caption");
  } else if (!where_.holds(row)) {
    drop(made, "where", "does not meet: " + options_.where);
  } else {
    add_picture(read_part(index_, *row.held, *row.image), options_, made);
    if (made.dropped.empty()) add_text(sample, made);
  }
  return made;
}

}  // namespace chiliad::dataset::detail
