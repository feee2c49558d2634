#include "chiliad/dataset/stats.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string_view>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/image/image.h"
#include "chiliad/io/file.h"

namespace chiliad::dataset {
namespace {

using index::MediaType;

constexpr std::array<std::pair<image::Flag, const char*>, 13> kFlagNames{
    {{image::kProgressive, "progressive"},
     {image::kInterlaced, "interlaced"},
     {image::kAlpha, "alpha"},
     {image::kPalette, "palette"},
     {image::kGrey, "grey"},
     {image::kCmyk, "cmyk"},
     {image::kSixteenBit, "16-bit"},
     {image::kAnimated, "animated"},
     {image::kIccProfile, "icc profile"},
     {image::kIccSrgb, "icc srgb"},
     {image::kIccP3, "icc p3"},
     {image::kIccOther, "icc other"},
     {image::kIccBroken, "icc broken"}}};

const char* media_name(MediaType media) {
  switch (media) {
    case MediaType::kImage:
      return "image";
    case MediaType::kText:
      return "text";
    case MediaType::kTuxpaintText:
      return "tuxpaint text";
    case MediaType::kJson:
      return "json";
    case MediaType::kJsonLine:
      return "json line";
    case MediaType::kConversation:
      return "conversation";
    case MediaType::kCsv:
      return "csv row";
    case MediaType::kOther:
      break;
  }
  return "other";
}

std::vector<Bin> make_bins(const std::vector<double>& borders) {
  std::vector<Bin> bins;
  for (size_t i = 0; i + 1 < borders.size(); ++i) bins.push_back({borders[i], borders[i + 1], 0});
  return bins;
}

/// Values outside go to the first or last bin.
void count_in(std::vector<Bin>& bins, double value) {
  const auto above = std::find_if(bins.begin(), bins.end(), [&](const Bin& bin) { return value < bin.high; });
  ++(above == bins.end() ? bins.back() : *above).count;
}

void count_image(Stats& stats, const index::Part& part) {
  stats.image_bytes += static_cast<int64_t>(part.length);
  for (const auto& [flag, name] : kFlagNames) {
    if ((part.image_flags & flag) != 0) ++stats.images_by_flag[name];
  }
  if (part.width == 0 || part.height == 0) return;
  const double width = part.width;
  const double height = part.height;
  count_in(stats.aspect_ratios, width / height);
  count_in(stats.sizes, std::sqrt(width * height));
}

void count_parts(Stats& stats, const index::Shard& shard) {
  for (const index::Part& part : shard.parts) {
    ++stats.parts_by_media[media_name(part.media)];
    stats.payload_bytes += static_cast<int64_t>(part.length);
    if (part.media == MediaType::kImage) count_image(stats, part);
    if (part.media != MediaType::kImage && part.media != MediaType::kJson && part.media != MediaType::kOther)
      stats.text_bytes += static_cast<int64_t>(part.length);
  }
}

void count_pictures(Stats& stats, const index::Shard& shard, const index::Sample& sample) {
  const auto first = shard.parts.begin() + sample.first_part;
  const auto end = first + sample.num_parts;
  ++stats.samples_by_pictures[std::count_if(first, end,
                                            [](const auto& p) { return p.media == MediaType::kImage; })];
  stats.num_conversations +=
      std::count_if(first, end, [](const auto& p) { return p.media == MediaType::kConversation; });
}

/// Nearest-rank percentiles.
void fill_percentiles(Stats& stats, std::vector<uint32_t> lengths) {
  if (lengths.empty()) return;
  std::sort(lengths.begin(), lengths.end());
  for (size_t i = 0; i < Stats::kPercentiles.size(); ++i) {
    const size_t rank = (lengths.size() * static_cast<size_t>(Stats::kPercentiles[i]) + 99) / 100;
    stats.caption_bytes[i] = lengths[std::max<size_t>(rank, 1) - 1];
  }
}

/// Digests that columns of the first shard are named by.
std::vector<Digest> counted_tokenizers(const index::Index& index) {
  std::vector<Digest> found;
  if (index.shards().empty()) return found;
  const auto sample = index::token_column_path(index.folder(), index.shards()[0].content, {});
  const std::string prefix = index.shards()[0].content.hex() + "-";
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(sample.parent_path(), error)) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() != sample.extension() || !name.starts_with(prefix)) continue;
    try {
      found.push_back(Digest::from_hex(name.substr(prefix.size())));
    } catch (const CorruptData&) {  // not one of ours
    }
  }
  return found;
}

void count_tokens(Stats& stats, const index::Index& index, const Digest& tokenizer) {
  int64_t tokens = 0;
  for (const index::Shard& shard : index.shards()) {
    const auto path = index::token_column_path(index.folder(), shard.content, tokenizer);
    if (!io::stat_file(path).has_value()) return;
    const index::TokenColumn column = index::read_token_column(path, shard.captions.size());
    for (const uint32_t count : column.caption_tokens) tokens += count;
  }
  stats.tokens_by_tokenizer[tokenizer.hex()] = tokens;
}

}  // namespace

Stats compute_stats(const index::Index& index) {
  Stats stats;
  stats.num_samples = index.num_samples();
  stats.num_bad = index.manifest().num_bad;
  stats.num_shards = static_cast<int64_t>(index.shards().size());
  stats.aspect_ratios = make_bins({0, 0.25, 0.5, 2.0 / 3, 0.8, 1.25, 1.5, 2, 4, 1e9});
  stats.sizes = make_bins({0, 32, 64, 128, 256, 512, 1024, 2048, 4096, 1e9});
  stats.caption_lengths = make_bins({0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 1e9});
  std::vector<uint32_t> lengths;
  for (const index::Shard& shard : index.shards()) {
    stats.num_blocks += static_cast<int64_t>(shard.blocks.size());
    count_parts(stats, shard);
    for (const index::Sample& sample : shard.samples) {
      count_pictures(stats, shard, sample);
      if ((sample.flags & index::kBadImage) != 0) ++stats.num_bad_images;
      if ((sample.flags & index::kNoCaption) != 0) ++stats.num_no_caption;
      if ((sample.flags & index::kHasImage) == 0 && sample.num_captions > 0 &&
          shard.parts[sample.first_part].media != MediaType::kConversation)
        ++stats.num_documents;
    }
    for (const index::Caption& caption : shard.captions) {
      ++stats.captions_by_language[index::language_name(caption.language)];
      lengths.push_back(caption.length);
      count_in(stats.caption_lengths, caption.length);
    }
  }
  fill_percentiles(stats, std::move(lengths));
  for (const Digest& tokenizer : counted_tokenizers(index)) count_tokens(stats, index, tokenizer);
  return stats;
}

}  // namespace chiliad::dataset
