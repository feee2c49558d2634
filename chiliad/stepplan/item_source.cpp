#include "chiliad/stepplan/item_source.h"

#include <algorithm>

#include "chiliad/base/error.h"
#include "chiliad/base/rng.h"
#include "chiliad/stepplan/item_tokens.h"
#include "chiliad/stepplan/permutation.h"

namespace chiliad::stepplan {
namespace {

// Keys of Draw::kOrder beside those of Order.
constexpr uint64_t kClusterSteps = 2;

// Small data sets stay in memory; of large ones, the window and the one before or after it.
constexpr int64_t kSmallItems = 1 << 20;
constexpr int64_t kLeastItems = 1 << 16;

int64_t cached_items(const Order& order) {
  if (order.num_items() <= kSmallItems) return kSmallItems;
  int64_t most = 0;
  for (const Window& window : order.windows()) most = std::max(most, window.num_items);
  return std::min(std::max(kLeastItems, most + most / 2), kSmallItems * 16);
}

}  // namespace

BlockItemsCache::Held BlockItemsCache::get(uint32_t block) {
  std::lock_guard lock(mutex_);  // also while it reads: others would read the same
  const auto found = kept_.find(block);
  if (found != kept_.end()) {
    used_.splice(used_.begin(), used_, found->second.used);
    return found->second.items;
  }
  Held made = read(block);
  used_.push_front(block);
  kept_.emplace(block, Kept{made, used_.begin()});
  num_items_ += static_cast<int64_t>(made->offset.size());
  while (num_items_ > max_items_ && used_.size() > 1) {
    const auto oldest = kept_.find(used_.back());
    num_items_ -= static_cast<int64_t>(oldest->second.items->offset.size());
    kept_.erase(oldest);
    used_.pop_back();
  }
  return made;
}

void BlockItemsCache::will_need(const std::vector<int64_t>& blocks) {
  std::vector<int64_t> missing;
  {
    std::lock_guard lock(mutex_);
    for (const int64_t block : blocks)
      if (!kept_.contains(static_cast<uint32_t>(block))) missing.push_back(block);
  }
  if (!missing.empty()) columns_.will_need(missing);
}

BlockItemsCache::Held BlockItemsCache::read(uint32_t block) const {
  auto made = std::make_shared<BlockItems>();
  made->buckets.resize(usable_.num_stages());
  columns_.read(block, made->rows);
  Coverage ignored;
  size_t kept = 0;
  auto& samples = made->rows.samples;
  for (size_t i = 0; i < samples.size(); ++i) {
    const auto bucket = usable_.bucket_of(made->rows, i, ignored);
    if (!bucket || !table_.holds(samples[i].key_hash, made->rows.first_sample + static_cast<int64_t>(i)))
      continue;
    made->offset.push_back(static_cast<uint32_t>(i));
    made->buckets[0].push_back(*bucket);
    for (size_t stage = 1; stage < made->buckets.size(); ++stage)
      made->buckets[stage].push_back(usable_.bucket_in(stage, samples[i]));
    samples[kept++] = samples[i];
  }
  samples.resize(kept);
  return made;
}

struct ItemSource::ClusterCache {
  std::mutex mutex;  // guards the rest
  int64_t epoch = -1;
  int64_t window = -1;
  std::vector<ItemPlace> items;  // sorted by group
};

ItemSource::ItemSource(SourceInputs inputs)
    : inputs_(std::move(inputs)),
      usable_(inputs_.options, inputs_.shapes, inputs_.of_documents, inputs_.tokens),
      clusters_(std::make_unique<ClusterCache>()) {
  if (inputs_.shapes) inputs_.table.num_buckets = inputs_.shapes->buckets().size();
  table_ = make_block_table(*inputs_.columns, usable_, inputs_.table);
  if (table_.num_items == 0) return;
  const spec::DataOptions& options = inputs_.options;
  order_ = std::make_unique<Order>(
      std::move(table_.items),
      OrderOptions{parse_order(options.order), options.window_blocks, options.batch, inputs_.seed});
  blocks_ = std::make_unique<BlockItemsCache>(*inputs_.columns, usable_, table_, cached_items(*order_));
  group_buckets();
}

ItemSource::~ItemSource() = default;

void ItemSource::group_buckets() {
  const int64_t groups = inputs_.options.shape_clusters;
  if (groups == 1 || inputs_.of_documents) return;
  for (size_t stage = 0; stage < inputs_.shapes->num_stages(); ++stage) {
    int64_t before = 0;
    for (int32_t b = inputs_.shapes->first_bucket(stage); b < inputs_.shapes->first_bucket(stage + 1); ++b) {
      // By the middle of the bucket's items: groups are about equal.
      const int64_t count = table_.bucket_items[static_cast<size_t>(b)];
      const double middle = static_cast<double>(before) + static_cast<double>(count) / 2.0;
      const double share = middle / static_cast<double>(num_items());
      bucket_group_.push_back(static_cast<int32_t>(share * static_cast<double>(groups)));
      before += count;
    }
  }
}

size_t ItemSource::stage_of(int64_t step_of_run) const {
  if (inputs_.of_documents) return 0;
  if (inputs_.table.part == PlanPart::kHeldOut) return inputs_.shapes->num_stages() - 1;
  return inputs_.shapes->stage_of(step_of_run);
}

std::vector<ItemPlace> ItemSource::clustered_places(int64_t epoch, int64_t window, int64_t step,
                                                    int64_t of_run) const {
  const Window& place = order_->windows()[static_cast<size_t>(window)];
  const auto key = Rng({inputs_.seed, static_cast<uint64_t>(epoch), static_cast<uint64_t>(Draw::kOrder),
                        kClusterSteps, static_cast<uint64_t>(window)})
                       .next_u64();
  const Permutation permute(static_cast<uint64_t>(place.num_steps), key);
  const auto j = static_cast<int64_t>(permute(static_cast<uint64_t>(step - place.first_step)));
  std::lock_guard lock(clusters_->mutex);
  if (clusters_->epoch != epoch || clusters_->window != window) {
    const auto places = order_->items(epoch, window, 0, place.num_items);
    blocks_->will_need(order_->blocks(epoch, window));
    std::vector<std::vector<ItemPlace>> groups(static_cast<size_t>(inputs_.options.shape_clusters) + 1);
    // Of the window's first step, also where a stage begins inside: each item stays in one of its steps.
    const size_t stage = stage_of(of_run - (step - place.first_step));
    for (const ItemPlace item : places) {
      const int32_t bucket = blocks_->get(item.block)->buckets[stage].at(item.item);
      groups[static_cast<size_t>(bucket_group_[static_cast<size_t>(bucket)])].push_back(item);
    }
    clusters_->items.clear();
    for (const auto& group : groups)
      clusters_->items.insert(clusters_->items.end(), group.begin(), group.end());
    clusters_->epoch = epoch;
    clusters_->window = window;
  }
  const auto begin = clusters_->items.begin();
  return {begin + place.step_start(j), begin + place.step_start(j + 1)};
}

int64_t ItemSource::step_items(int64_t epoch, int64_t step, int64_t of_run, std::vector<Item>& items) const {
  const int64_t window = order_->window_of(step);
  const Window& place = order_->windows()[static_cast<size_t>(window)];
  const int64_t j = step - place.first_step;
  const auto places = bucket_group_.empty()
                          ? order_->items(epoch, window, place.step_start(j), place.step_start(j + 1))
                          : clustered_places(epoch, window, step, of_run);
  append_items(epoch, window, stage_of(of_run), places, items);
  return window;
}

void ItemSource::row_items(int64_t first, int64_t last, int64_t of_run, std::vector<Item>& items) const {
  const size_t stage = stage_of(of_run);
  while (first < last) {
    const int64_t epoch = first / num_items();
    const int64_t at = first % num_items();
    const int64_t window = order_->window_with(at);
    const Window& place = order_->windows()[static_cast<size_t>(window)];
    const int64_t begin = at - place.first_item;
    const int64_t end = std::min(place.num_items, begin + last - first);
    append_items(epoch, window, stage, order_->items(epoch, window, begin, end), items);
    first += end - begin;
  }
}

void ItemSource::append_items(int64_t epoch, int64_t window, size_t stage,
                              const std::vector<ItemPlace>& places, std::vector<Item>& items) const {
  blocks_->will_need(order_->blocks(epoch, window));
  std::unordered_map<uint32_t, BlockItemsCache::Held> held;
  for (const ItemPlace place : places) {
    auto& block = held[place.block];
    if (block == nullptr) block = blocks_->get(place.block);
    items.push_back(make_item(*block, place.item, stage, epoch));
  }
}

void ItemSource::sample_item(int64_t epoch, int64_t block, int64_t sample, std::vector<Item>& items) const {
  const auto held = blocks_->get(static_cast<uint32_t>(block));
  const auto at =
      std::lower_bound(held->offset.begin(), held->offset.end(), sample - held->rows.first_sample);
  CHILIAD_CHECK(at != held->offset.end() && *at == sample - held->rows.first_sample,
                "sample {} is no item of block {}", sample, block);
  items.push_back(make_item(*held, static_cast<size_t>(at - held->offset.begin()), 0, epoch));
}

std::vector<int64_t> ItemSource::samples() const {
  std::vector<int64_t> numbers;
  for (int64_t block = 0; block < inputs_.columns->num_blocks(); ++block) {
    const auto held = blocks_->get(static_cast<uint32_t>(block));
    for (const uint32_t offset : held->offset) numbers.push_back(held->rows.first_sample + offset);
  }
  return numbers;
}

void ItemSource::draw_caption(const BlockItemsCache::BlockItems& block, size_t i, int64_t epoch,
                              Item& item) const {
  const auto& sample = block.rows.samples[i];
  const auto is_choice = [&](uint32_t c) {
    return usable_.wanted(block.rows.captions[sample.captions_at + c].language);
  };
  uint64_t choices = 0;
  for (uint32_t c = 0; usable_.draws_captions() && c < sample.num_captions; ++c)
    choices += is_choice(c) ? 1 : 0;
  if (choices == 0) return;
  uint64_t drawn = 0;
  if (choices > 1) {
    drawn = Rng({inputs_.seed, static_cast<uint64_t>(epoch), sample.key_hash,
                 static_cast<uint64_t>(Draw::kCaption)})
                .below(choices);
  }
  for (uint32_t c = 0;; ++c) {
    if (!is_choice(c) || drawn-- > 0) continue;
    item.caption = static_cast<int32_t>(sample.first_caption + c);
    const uint32_t count = usable_.tokens(block.rows, sample, c);
    item.num_tokens = item_tokens(count, inputs_.of_documents, inputs_.options.sequence_length);
    if (inputs_.pictures.tiles) {
      item.image_tokens = inputs_.pictures.positions(block.rows.shard, sample.first_caption + c);
      item.num_tiles = inputs_.pictures.tiles(block.rows.shard, sample.first_caption + c);
    }
    return;
  }
}

Item ItemSource::make_item(const BlockItemsCache::BlockItems& block, size_t i, size_t stage,
                           int64_t epoch) const {
  const auto& sample = block.rows.samples.at(i);
  const auto draw = [&](Draw purpose) {
    return Rng({inputs_.seed, static_cast<uint64_t>(epoch), sample.key_hash, static_cast<uint64_t>(purpose)});
  };
  Item item;
  item.sample = block.rows.first_sample + block.offset[i];
  item.bucket = block.buckets[stage][i];
  item.draw_key = Rng({inputs_.seed, static_cast<uint64_t>(epoch), sample.key_hash}).next_u64();
  item.num_tokens = 1;
  draw_caption(block, i, epoch, item);
  if (inputs_.of_documents) return item;
  if (inputs_.options.crop == "random") {
    Rng rng = draw(Draw::kCrop);
    item.crop_x = rng.uniform();
    item.crop_y = rng.uniform();
  }
  item.flip = inputs_.options.flip && draw(Draw::kFlip).below(2) == 1;
  return item;
}

void ItemSource::append_planned(std::vector<Planned>& list) const {
  BlockTable both = table_;
  index::BlockRows rows;
  Coverage ignored;
  for (int64_t block = 0; block < inputs_.columns->num_blocks(); ++block) {
    inputs_.columns->read(block, rows);
    for (size_t i = 0; i < rows.samples.size(); ++i) {
      const int64_t sample = rows.first_sample + static_cast<int64_t>(i);
      const auto bucket = usable_.bucket_of(rows, i, ignored);
      if (!bucket) continue;
      both.part = PlanPart::kTraining;
      bool holds = both.holds(rows.samples[i].key_hash, sample);
      both.part = PlanPart::kHeldOut;
      holds = holds || both.holds(rows.samples[i].key_hash, sample);
      if (holds) list.push_back({sample, *bucket});
    }
  }
}

}  // namespace chiliad::stepplan
