#include "chiliad/stepplan/plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/planted.h"
#include "chiliad/base/rng.h"
#include "chiliad/stepplan/permutation.h"

namespace chiliad::stepplan {
namespace {

constexpr uint64_t kLimitKey = 0x6C696D6974ULL;
constexpr uint64_t kHeldOutKey = 0x68656C64ULL;
// Keys of Draw::kOrder beside those of Order.
constexpr uint64_t kClusterSteps = 2;

/// Nothing where nothing is held out: the digests of runs from before it existed stay.
void add_held_out(const spec::DataOptions& options, Hasher& hasher) {
  if (options.held_out > 0) hasher.add("held out").add(options.held_out);
}

/// Settings of pictures are no content of documents.
Digest documents_digest_of(const spec::DataOptions& options, const Digest& encoder) {
  Hasher hasher;
  hasher.add("plan 1 of documents").add(encoder).add(options.sequence_length).add(options.batch);
  hasher.add(static_cast<int64_t>(options.languages.size()));
  for (const std::string& language : options.languages) hasher.add(language);
  hasher.add(options.limit).add(options.order).add(options.window_blocks);
  add_held_out(options, hasher);
  return hasher.digest();
}

/// Which shape a picture takes. Added only where used, as below.
void add_buckets(const spec::DataOptions& options, Hasher& hasher) {
  if (options.buckets != "auto") hasher.add("buckets").add(options.buckets);
  if (options.bucket_no_upscale) hasher.add("no upscale");
  if (options.bucket_choice == "auto") return;
  hasher.add("bucket_choice").add(options.bucket_choice);
  if (options.bucket_choice == "most_pixels") hasher.add(options.max_crop);
}

/// Added only where used, so that runs from before these options existed resume.
void add_transforms(const spec::DataOptions& options, Hasher& hasher) {
  if (options.dct_margin != 0.0) hasher.add("dct_margin").add(options.dct_margin);
  if (options.jitter_brightness == 0.0 && options.jitter_contrast == 0.0 && options.jitter_saturation == 0.0)
    return;
  hasher.add("jitter").add(options.jitter_brightness).add(options.jitter_contrast);
  hasher.add(options.jitter_saturation);
}

Digest content_digest_of(const spec::DataOptions& options, const Digest& documents) {
  if (documents != Digest{}) return documents_digest_of(options, documents);
  Hasher hasher;
  hasher.add("plan 1").add(options.batch).add(options.resolution).add(options.bucket_step);
  hasher.add(options.bucket_min).add(options.bucket_max).add(options.max_aspect_error);
  hasher.add(static_cast<int64_t>(options.languages.size()));
  for (const std::string& language : options.languages) hasher.add(language);
  hasher.add(options.limit).add(options.order).add(options.window_blocks).add(options.shape_clusters);
  hasher.add(options.flip ? 1 : 0).add(options.crop).add(options.background);
  add_held_out(options, hasher);
  add_buckets(options, hasher);
  add_transforms(options, hasher);
  return hasher.digest();
}

void check_options(const spec::DataOptions& options) {
  const auto at_least = [](const char* name, int64_t value, int64_t low) {
    if (value < low)
      throw InvalidInput("data", fmt::format("{}: expected at least {}, got {}", name, low, value));
  };
  at_least("batch", options.batch, 1);
  at_least("limit", options.limit, 0);
  at_least("held_out", options.held_out, 0);
  at_least("window_blocks", options.window_blocks, 1);
  at_least("shape_clusters", options.shape_clusters, 1);
  at_least("sequence_length", options.sequence_length, 1);
  if (options.mode != "bucket" && options.mode != "pack" && options.mode != "pad") {
    throw InvalidInput("data.mode", fmt::format("expected bucket, pack or pad, got '{}'", options.mode));
  }
  if (options.crop != "center" && options.crop != "random") {
    throw InvalidInput("data.crop", fmt::format("expected center or random, got '{}'", options.crop));
  }
}

const index::Part* image_of(const index::Shard& shard, const index::Sample& sample) {
  for (uint32_t i = 0; i < sample.num_parts; ++i) {
    const index::Part& part = shard.parts.at(sample.first_part + i);
    if (part.media == index::MediaType::kImage) return &part;
  }
  return nullptr;
}

bool wanted(const std::vector<uint32_t>& languages, const index::Caption& caption) {
  return caption.language == 0 ||
         std::find(languages.begin(), languages.end(), caption.language) != languages.end();
}

double aspect_error(const index::Part& image, Bucket bucket) {
  const double ratio = static_cast<double>(image.width) / image.height;
  return std::abs(std::log(ratio * bucket.height / bucket.width));
}

}  // namespace

struct Plan::ClusterCache {
  std::mutex mutex;  // guards the rest
  int64_t epoch = -1;
  int64_t window = -1;
  std::vector<int64_t> items;  // sorted by group
};

Plan::Plan(const index::Index& index, const spec::DataOptions& options, uint64_t seed, TokenCount tokens,
           const Digest& documents, PlanPart part, std::shared_ptr<const OfflinePacks> packs)
    : index_(index),
      options_(options),
      of_documents_(documents != Digest{}),
      seed_(seed),
      tokens_(std::move(tokens)),
      table_(of_documents_ ? std::nullopt : std::make_optional<BucketTable>(options)),
      buckets_(of_documents_ ? std::vector<Bucket>{{}} : table_->buckets()),
      packs_(part == PlanPart::kTraining ? std::move(packs) : nullptr),
      cache_(std::make_unique<ClusterCache>()),
      content_(content_digest_of(options, documents)) {
  check_options(options);
  CHILIAD_CHECK(!of_documents_ || options.mode != "bucket", "documents in mode {}", options.mode);
  for (const std::string& language : options.languages) languages_.push_back(index::language_code(language));
  if (part == PlanPart::kHeldOut) {
    options_.order = "sequential";
    options_.shape_clusters = 1;
  }
  find_usable();
  choose_part(part);
  if (usable_.empty()) {
    throw InvalidInput(
        "data",
        fmt::format("no item is left of {} in the index: {} bad images, {} without a caption in "
                    "data.languages, {} beyond data.max_aspect_error, {} too small for data.buckets, {} "
                    "documents without a target",
                    coverage_.in_index, coverage_.bad_image, coverage_.no_caption, coverage_.aspect,
                    coverage_.too_small, coverage_.too_short));
  }
  coverage_.in_order = items_per_epoch();
  if (packs_ != nullptr) take_packs(documents);
  make_order();
  group_buckets();
}

Plan::~Plan() = default;
Plan::Plan(Plan&&) noexcept = default;

void Plan::find_usable() {
  shard_start_.push_back(0);
  for (size_t s = 0; s < index_.shards().size(); ++s) {
    const index::Shard& shard = index_.shards()[s];
    for (size_t i = 0; i < shard.samples.size(); ++i)
      add_usable(shard.samples[i], static_cast<uint32_t>(s), shard_start_.back() + static_cast<int64_t>(i));
    shard_start_.push_back(shard_start_.back() + static_cast<int64_t>(shard.samples.size()));
  }
  coverage_.in_index = shard_start_.back();
}

void Plan::add_usable(const index::Sample& sample, uint32_t shard_number, int64_t number) {
  const index::Shard& shard = index_.shards()[shard_number];
  const index::Part* image = packs_documents() ? nullptr : image_of(shard, sample);
  const bool bad =
      (sample.flags & index::kBadImage) != 0 || image == nullptr || image->width == 0 || image->height == 0;
  if (!packs_documents() && bad) {
    ++coverage_.bad_image;
    return;
  }
  if ((packs_documents() || !languages_.empty()) && !has_wanted_caption(shard, sample)) {
    ++coverage_.no_caption;
    return;
  }
  if (packs_documents()) {
    if (is_long_enough(sample, shard_number)) usable_.push_back({number, 0, shard_number});
    return;
  }
  const BucketTable::Choice choice = table_->assign(image->width, image->height);
  if (choice.too_small) {
    ++coverage_.too_small;
    return;
  }
  if (choice.too_far ||
      (options_.max_aspect_error > 0.0 &&
       aspect_error(*image, buckets_[static_cast<size_t>(choice.bucket)]) > options_.max_aspect_error)) {
    ++coverage_.aspect;
    return;
  }
  usable_.push_back({number, choice.bucket, shard_number});
}

bool Plan::has_wanted_caption(const index::Shard& shard, const index::Sample& sample) const {
  const auto first = shard.captions.begin() + sample.first_caption;
  return std::any_of(first, first + sample.num_captions, [&](const index::Caption& caption) {
    return languages_.empty() || wanted(languages_, caption);
  });
}

// Any of the wanted captions may be drawn, so all must have a target.
bool Plan::is_long_enough(const index::Sample& sample, uint32_t shard_number) {
  const index::Shard& shard = index_.shards()[shard_number];
  const auto most = options_.sequence_length + 1;
  for (uint32_t c = sample.first_caption; c < sample.first_caption + sample.num_captions; ++c) {
    if (!languages_.empty() && !wanted(languages_, shard.captions[c])) continue;
    const int64_t count = tokens_(shard_number, c);
    if (count < 2) {
      ++coverage_.too_short;
      return false;
    }
    if (count <= most) continue;
    ++coverage_.cut;
    coverage_.cut_tokens += count - most;
  }
  return true;
}

uint32_t Plan::item_tokens(uint32_t shard, uint32_t caption) const {
  const uint32_t count = tokens_(shard, caption);
  if (!packs_documents()) return std::max(1U, count);
  return static_cast<uint32_t>(std::min<int64_t>(int64_t{count} - 1, options_.sequence_length));
}

std::vector<Plan::Usable> Plan::take_keyed(int64_t count, uint64_t key) {
  const auto rank = [&](const Usable& usable) {
    const index::Shard& shard = index_.shards()[usable.shard];
    const auto local = static_cast<size_t>(usable.sample - shard_start_[usable.shard]);
    return std::pair(mix64(shard.samples[local].key_hash ^ key), usable.sample);
  };
  std::vector<std::pair<std::pair<uint64_t, int64_t>, size_t>> ranked;
  ranked.reserve(usable_.size());
  for (size_t i = 0; i < usable_.size(); ++i) ranked.emplace_back(rank(usable_[i]), i);
  std::nth_element(ranked.begin(), ranked.begin() + count, ranked.end());
  std::vector<bool> is_taken(usable_.size(), false);
  for (int64_t i = 0; i < count; ++i) is_taken[ranked[static_cast<size_t>(i)].second] = true;
  std::vector<Usable> taken;
  std::vector<Usable> left;
  for (size_t i = 0; i < usable_.size(); ++i) (is_taken[i] ? taken : left).push_back(usable_[i]);
  usable_ = std::move(left);
  return taken;
}

void Plan::choose_part(PlanPart part) {
  if (options_.held_out > 0) {
    if (options_.held_out >= items_per_epoch()) {
      throw InvalidInput("data.held_out",
                         fmt::format("expected fewer than the {} usable items, got {}. Lower it",
                                     items_per_epoch(), options_.held_out));
    }
    other_ = take_keyed(options_.held_out, kHeldOutKey);
    coverage_.held_out = options_.held_out;
  }
  if (options_.limit > 0 && items_per_epoch() > options_.limit) {
    coverage_.over_limit = items_per_epoch() - options_.limit;
    usable_ = take_keyed(options_.limit, kLimitKey);
  }
  if (part == PlanPart::kHeldOut) std::swap(usable_, other_);
}

std::vector<int64_t> block_ends(const index::Index& index) {
  // Samples outside of every block would be lost: a block reaches to the first sample of the next one.
  std::vector<int64_t> ends;
  int64_t first = 0;
  for (const index::Shard& shard : index.shards()) {
    for (size_t b = 1; b < shard.blocks.size(); ++b) ends.push_back(first + shard.blocks[b].first_sample);
    first += static_cast<int64_t>(shard.samples.size());
    ends.push_back(first);
  }
  return ends;
}

void Plan::take_packs(const Digest& documents) {
  const auto now = packs_identity(index_.manifest().digest, documents, options_);
  check_packs(packs_->identity(), now, options_.packs.empty() ? "the packs" : options_.packs);
  std::vector<int64_t> packed;
  for (int64_t p = 0; p < packs_->num_packs(); ++p)
    packed.insert(packed.end(), packs_->samples(p).begin(), packs_->samples(p).end());
  std::sort(packed.begin(), packed.end());
  if (packed != samples())
    throw CorruptData("data.packs",
                      fmt::format("expected each of the {} samples in one pack, got {} places. Make it "
                                  "again with `chiliad data pack`",
                                  usable_.size(), packed.size()));
  content_ = Hasher().add(content_).add("packs").add(packs_->digest()).digest();
}

void Plan::make_order() {
  if (packs_ != nullptr) {  // a window is one of those that were packed together
    const OrderOptions order{parse_order(options_.order), 1, options_.batch, seed_};
    order_ = std::make_unique<Order>(packs_->group_sizes(), order);
    steps_per_epoch_ = order_->steps_per_epoch();
    return;
  }
  std::vector<int64_t> block_items;
  size_t at = 0;
  for (const int64_t end : block_ends(index_)) {
    const size_t first = at;
    while (at < usable_.size() && usable_[at].sample < end) ++at;
    if (at > first) block_items.push_back(static_cast<int64_t>(at - first));
  }
  CHILIAD_CHECK_EQ(at, usable_.size());
  order_ = std::make_unique<Order>(
      block_items, OrderOptions{parse_order(options_.order), options_.window_blocks, options_.batch, seed_});
  steps_per_epoch_ = order_->steps_per_epoch();
}

void Plan::group_buckets() {
  if (options_.shape_clusters == 1 || packs_documents() || packs_ != nullptr) return;
  std::vector<int64_t> counts(buckets_.size());
  for (const Usable& usable : usable_) ++counts[static_cast<size_t>(usable.bucket)];
  int64_t before = 0;
  for (const int64_t count : counts) {  // by the middle of the bucket's items, so that groups are about equal
    const double middle = static_cast<double>(before) + static_cast<double>(count) / 2.0;
    const double share = middle / static_cast<double>(items_per_epoch());
    bucket_group_.push_back(static_cast<int32_t>(share * static_cast<double>(options_.shape_clusters)));
    before += count;
  }
}

std::vector<int64_t> Plan::clustered_items(int64_t epoch, int64_t window, int64_t step) const {
  const Window& place = order_->windows()[static_cast<size_t>(window)];
  const auto key = Rng({seed_, static_cast<uint64_t>(epoch), static_cast<uint64_t>(Draw::kOrder),
                        kClusterSteps, static_cast<uint64_t>(window)})
                       .next_u64();
  const Permutation permute(static_cast<uint64_t>(place.num_steps), key);
  const auto j = static_cast<int64_t>(permute(static_cast<uint64_t>(step - place.first_step)));
  std::lock_guard lock(cache_->mutex);
  if (cache_->epoch != epoch || cache_->window != window) {
    cache_->items = order_->items(epoch, window, 0, place.num_items);
    const auto group = [&](int64_t item) {
      return bucket_group_[static_cast<size_t>(usable_[static_cast<size_t>(item)].bucket)];
    };
    std::stable_sort(cache_->items.begin(), cache_->items.end(),
                     [&](int64_t a, int64_t b) { return group(a) < group(b); });
    cache_->epoch = epoch;
    cache_->window = window;
  }
  const auto begin = cache_->items.begin();
  return {begin + place.step_start(j), begin + place.step_start(j + 1)};
}

std::vector<uint32_t> Plan::captions_of(const index::Shard& shard, const index::Sample& sample) const {
  std::vector<uint32_t> choices;
  const bool all = packs_documents() && languages_.empty();
  for (uint32_t i = 0; i < sample.num_captions && (all || !languages_.empty()); ++i) {
    if (all || wanted(languages_, shard.captions[sample.first_caption + i]))
      choices.push_back(sample.first_caption + i);
  }
  return choices;
}

std::vector<uint32_t> Plan::captions_of(int64_t sample) const {
  return captions_of(index_.shard_of(sample), index_.sample(sample));
}

uint32_t Plan::longest_tokens(int64_t sample) const {
  const auto after = std::upper_bound(shard_start_.begin(), shard_start_.end(), sample);
  const auto shard = static_cast<uint32_t>(after - shard_start_.begin() - 1);
  uint32_t longest = 1;
  for (const uint32_t caption : captions_of(sample)) longest = std::max(longest, item_tokens(shard, caption));
  return longest;
}

std::vector<int64_t> Plan::samples() const {
  std::vector<int64_t> numbers;
  numbers.reserve(usable_.size());
  for (const Usable& usable : usable_) numbers.push_back(usable.sample);
  return numbers;
}

std::vector<Plan::Planned> Plan::planned() const {
  std::vector<Planned> list;
  list.reserve(usable_.size() + other_.size());
  for (const auto* part : {&usable_, &other_})
    for (const Usable& usable : *part) list.push_back({usable.sample, usable.bucket});
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.sample < b.sample; });
  return list;
}

Item Plan::make_item(const Usable& usable, int64_t epoch) const {
  const index::Shard& shard = index_.shards()[usable.shard];
  const index::Sample& sample =
      shard.samples[static_cast<size_t>(usable.sample - shard_start_[usable.shard])];
  const auto draw = [&](Draw purpose) {
    return Rng({seed_, static_cast<uint64_t>(epoch), sample.key_hash, static_cast<uint64_t>(purpose)});
  };
  Item item;
  item.sample = usable.sample;
  item.bucket = usable.bucket;
  item.draw_key = Rng({seed_, static_cast<uint64_t>(epoch), sample.key_hash}).next_u64();
  const std::vector<uint32_t> choices = captions_of(shard, sample);
  item.num_tokens = 1;
  if (!choices.empty()) {
    const uint32_t caption = choices[draw(Draw::kCaption).below(choices.size())];
    item.caption = static_cast<int32_t>(caption);
    item.num_tokens = item_tokens(usable.shard, caption);
  }
  if (packs_documents()) return item;
  if (options_.crop == "random") {
    Rng rng = draw(Draw::kCrop);
    item.crop_x = rng.uniform();
    item.crop_y = rng.uniform();
  }
  item.flip = options_.flip && draw(Draw::kFlip).below(2) == 1;
  return item;
}

Step Plan::select(int64_t step, const Journal& journal) const {
  CHILIAD_CHECK_GE(step, 0);
  Step selected;
  selected.step = step;
  selected.epoch = step / steps_per_epoch_;
  const int64_t in_epoch = step % steps_per_epoch_;
  selected.window = order_->window_of(in_epoch);
  const Window& window = order_->windows()[static_cast<size_t>(selected.window)];
  const int64_t j = in_epoch - window.first_step;
  const std::vector<int64_t> items =
      bucket_group_.empty()
          ? order_->items(selected.epoch, selected.window, window.step_start(j), window.step_start(j + 1))
          : clustered_items(selected.epoch, selected.window, in_epoch);
  selected.items.reserve(items.size());
  for (const int64_t ordered : items) add_items(ordered, selected, journal);
  return selected;
}

// The item, or those of the pack, that the order holds there.
void Plan::add_items(int64_t ordered, Step& step, const Journal& journal) const {
  const auto add = [&](const Usable& usable, int32_t pack) {
    Item item = make_item(usable, step.epoch);
    item.position = static_cast<uint32_t>(step.items.size());
    item.weight = journal.weight(item.sample, step.step);
    item.pack = pack;
    step.items.push_back(item);
  };
  if (packs_ == nullptr) return add(usable_[static_cast<size_t>(ordered)], -1);
  const int32_t pack = step.items.empty() ? 0 : step.items.back().pack + 1;
  for (const int64_t sample : packs_->samples(ordered)) {
    add(*std::lower_bound(usable_.begin(), usable_.end(), sample,
                          [](const Usable& usable, int64_t number) { return usable.sample < number; }),
        pack);
  }
}

Cursor Plan::cursor(int64_t next_step, const Journal& journal) const {
  Cursor cursor;
  cursor.data = index_.manifest().digest;
  cursor.content = content_;
  cursor.seed = seed_;
  cursor.next_step = planted_bug("cursor_off_by_one") ? next_step + 1 : next_step;
  cursor.journal = journal.digest();
  return cursor;
}

void Plan::check_resumable(const Cursor& cursor) const {
  std::string differing;
  const auto compare = [&](const char* name, const std::string& saved, const std::string& now) {
    if (saved == now) return;
    if (!differing.empty()) differing += "; ";
    differing += fmt::format("{}: was {}, is {}", name, saved, now);
  };
  compare("data.index (what the data set holds)", cursor.data.hex(), index_.manifest().digest.hex());
  compare("data (settings that decide content)", cursor.content.hex(), content_.hex());
  compare("run.seed", std::to_string(cursor.seed), std::to_string(seed_));
  if (differing.empty()) return;
  throw InvalidInput("resume",
                     fmt::format("the order of items would differ: {}. Restore these settings, or start "
                                 "a new run",
                                 differing));
}

}  // namespace chiliad::stepplan
