#include "chiliad/report/quarantine.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>

#include "chiliad/base/error.h"
#include "chiliad/image/decode_fit.h"
#include "chiliad/image/encode.h"
#include "chiliad/io/file.h"
#include "chiliad/stepplan/bad_rates.h"

namespace chiliad::report {
namespace {

constexpr uint64_t kMostBytes = uint64_t{64} << 20;  // of a damaged file, for a thumbnail

/// The picture as far as it decodes, whatever its checksum.
HostArray decode_what_there_is(const index::Index& index, const index::Shard& shard, const index::Part& part,
                               int32_t side) {
  HostArray pixels(DType::kU8, Shape{side, side, 3});
  if (part.length > kMostBytes) return {};
  std::vector<std::byte> bytes(part.length);
  try {
    const auto file = io::File::open_read(index.part_path(shard, part));
    bytes.resize(static_cast<size_t>(file.read_some_at(static_cast<int64_t>(part.offset), bytes)));
  } catch (const Error&) {
    return {};  // that its storage fails is said elsewhere
  }
  image::FitOptions options;
  options.fit = [side](int32_t width, int32_t height) {
    return image::cover_fit(width, height, side, side, 0.5, 0.5);
  };
  static_cast<void>(image::decode_fit(bytes, options, pixels.bytes()));  // rows before the damage are there
  const auto all = pixels.bytes();
  const bool is_empty = std::all_of(all.begin(), all.end(), [](std::byte b) { return b == std::byte{0}; });
  return is_empty ? HostArray() : std::move(pixels);
}

class Examiner {
 public:
  Examiner(const index::Index& index, const QuarantineOptions& options)
      : index_(index), options_(options), groups_(index), loader_(index, {}) {}

  [[nodiscard]] QuarantinedItem examine(const stepplan::Amendment& amendment) {
    QuarantinedItem item;
    item.amendment = amendment;
    item.kind = stepplan::reason_kind(amendment.reason);
    item.key = index_.key(amendment.sample);
    item.group = groups_.name(groups_.of(amendment.sample));
    place(item);
    try {
      item.now = look(item);
      item.state = item.now.empty() ? ItemState::kGood : ItemState::kBad;
    } catch (const Unavailable& error) {
      item.state = ItemState::kUnavailable;
      item.now = error.what();
    } catch (const CorruptData& error) {
      item.now = error.what();
    }
    if (item.thumb.empty()) add_partial(item);
    return item;
  }

 private:
  void place(QuarantinedItem& item) const {
    const auto held = index_.shard_of(item.amendment.sample);
    const index::Shard& shard = *held;
    const index::Sample sample = index_.sample(item.amendment.sample);
    const auto image = index_.image_part(item.amendment.sample);
    const index::Part* part = image.get();
    if (part == nullptr && sample.num_parts > 0) part = &shard.parts.at(sample.first_part);
    if (part == nullptr) return;
    item.file = shard.files.at(part->file).path;
    item.first_byte = part->offset;
    item.end_byte = part->offset + part->length;
  }

  /// What is wrong with it; a good picture leaves its thumbnail.
  std::string look(QuarantinedItem& item) {
    const int64_t number = item.amendment.sample;
    if (index_.image_part(number) != nullptr) {
      const int32_t side = options_.thumb_side;
      HostArray pixels(DType::kU8, Shape{side, side, 3});
      stepplan::Item alone;
      alone.sample = number;
      const std::string refusal = loader_.load_alone(alone, {side, side}, pixels.bytes());
      if (!refusal.empty()) return refusal;
      item.thumb = image::encode_png(pixels);
    }
    const index::Sample sample = index_.sample(number);
    for (uint32_t i = 0; i < sample.num_captions; ++i) {
      const auto caption = loader_.read_caption(number, sample.first_caption + i);
      if (!caption.refusal.empty()) return fmt::format("{}: {}", item.key, caption.refusal);
    }
    return options_.check_more ? options_.check_more(number) : "";
  }

  void add_partial(QuarantinedItem& item) const {
    const auto part = index_.image_part(item.amendment.sample);
    if (part == nullptr) return;
    const HostArray pixels =
        decode_what_there_is(index_, *index_.shard_of(item.amendment.sample), *part, options_.thumb_side);
    if (pixels.count() == 0) return;
    item.thumb = image::encode_png(pixels);
    item.is_partial = true;
  }

  const index::Index& index_;
  const QuarantineOptions& options_;
  const stepplan::SampleGroups groups_;
  loader::ItemLoader loader_;
};

}  // namespace

const char* state_name(ItemState state) {
  switch (state) {
    case ItemState::kGood:
      return "good";
    case ItemState::kBad:
      return "bad";
    case ItemState::kUnavailable:
      break;
  }
  return "unavailable";
}

std::vector<QuarantinedItem> examine(const stepplan::Journal& journal, const index::Index& index,
                                     const QuarantineOptions& options) {
  Examiner examiner(index, options);
  std::vector<QuarantinedItem> items;
  const auto total = static_cast<int64_t>(journal.amendments().size());
  for (const auto& amendment : journal.amendments()) {
    if (amendment.sample < 0 || amendment.sample >= index.num_samples()) {
      throw InvalidInput("journal",
                         fmt::format("expected samples of an index of {}, got {}. Give the index that "
                                     "the run was trained on",
                                     index.num_samples(), amendment.sample));
    }
    items.push_back(examiner.examine(amendment));
    if (options.progress) options.progress(static_cast<int64_t>(items.size()), total);
  }
  return items;
}

}  // namespace chiliad::report
