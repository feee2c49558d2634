#include "chiliad/report/quarantine.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>

#include "chiliad/base/error.h"
#include "chiliad/image/encode.h"
#include "chiliad/report/thumbnail.h"
#include "chiliad/stepplan/bad_rates.h"

namespace chiliad::report {
namespace {

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
    item.thumb =
        read_thumbnail(index_, *index_.shard_of(item.amendment.sample), *part, options_.thumb_side).png;
    item.is_partial = !item.thumb.empty();
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
