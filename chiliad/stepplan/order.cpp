#include "chiliad/stepplan/order.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/rng.h"
#include "chiliad/stepplan/permutation.h"

namespace chiliad::stepplan {
namespace {

// A window of few steps would cut the steps much below `batch`.
constexpr int64_t kMinStepsInWindow = 8;

constexpr size_t kStride = 64;  // blocks
constexpr size_t kRecentEpochs = 4;
constexpr size_t kRecentWindows = 4;

// Second part of the keys of Draw::kOrder.
constexpr uint64_t kBlocks = 0;
constexpr uint64_t kItems = 1;

uint64_t order_key(uint64_t seed, int64_t epoch, uint64_t what, int64_t window) {
  return Rng({seed, static_cast<uint64_t>(epoch), static_cast<uint64_t>(Draw::kOrder), what,
              static_cast<uint64_t>(window)})
      .next_u64();
}

/// Puts `made` in front and drops the oldest.
template <typename T>
void remember(std::list<std::shared_ptr<const T>>& recent, std::shared_ptr<const T> made, size_t most) {
  recent.push_front(std::move(made));
  if (recent.size() > most) recent.pop_back();
}

/// The one that `is_it` is true for, moved to the front; or null.
template <typename T, typename IsIt>
std::shared_ptr<const T> recall(std::list<std::shared_ptr<const T>>& recent, const IsIt& is_it) {
  const auto found = std::find_if(recent.begin(), recent.end(), [&](const auto& one) { return is_it(*one); });
  if (found == recent.end()) return nullptr;
  recent.splice(recent.begin(), recent, found);
  return recent.front();
}

}  // namespace

OrderKind parse_order(const std::string& name) {
  if (name == "window") return OrderKind::kWindow;
  if (name == "full") return OrderKind::kFull;
  if (name == "sequential") return OrderKind::kSequential;
  throw InvalidInput("data.order", fmt::format("expected window, full or sequential, got '{}'", name));
}

Order::Order(std::vector<uint32_t> block_items, const OrderOptions& options)
    : options_(options), block_items_(std::move(block_items)) {
  CHILIAD_CHECK_GT(options.batch, 0);
  CHILIAD_CHECK_GT(options.window_blocks, 0);
  CHILIAD_CHECK_LT(block_items_.size(), size_t{UINT32_MAX});
  for (size_t b = 0; b < block_items_.size(); ++b) {
    if (b % kStride == 0) stride_start_.push_back(num_items_);
    num_items_ += block_items_[b];
    num_filled_ += block_items_[b] > 0 ? 1 : 0;
  }
  if (num_filled_ < block_items_.size()) {
    filled_.reserve(num_filled_);
    for (size_t b = 0; b < block_items_.size(); ++b)
      if (block_items_[b] > 0) filled_.push_back(static_cast<uint32_t>(b));
  }
  CHILIAD_CHECK_GT(num_items(), 0);
  cut_windows();
}

void Order::cut_windows() {
  const int64_t total = num_items();
  int64_t count = 1;
  if (options_.kind == OrderKind::kWindow) {
    const auto num_blocks = static_cast<int64_t>(num_filled_);
    const int64_t by_blocks = (num_blocks + options_.window_blocks - 1) / options_.window_blocks;
    const int64_t by_steps = total / (kMinStepsInWindow * options_.batch);
    count = std::max<int64_t>(1, std::min(by_blocks, by_steps));
  }
  windows_.reserve(static_cast<size_t>(count));
  int64_t first_step = 0;
  for (int64_t w = 0; w < count; ++w) {
    const auto cut = [&](int64_t i) {
      return static_cast<int64_t>(static_cast<__int128>(i) * total / count);
    };
    const int64_t num_items = cut(w + 1) - cut(w);
    const int64_t num_steps = (num_items + options_.batch - 1) / options_.batch;
    windows_.push_back({cut(w), num_items, first_step, num_steps});
    first_step += num_steps;
  }
}

int64_t Order::steps_per_epoch() const {
  return windows_.back().first_step + windows_.back().num_steps;
}

int64_t Order::window_of(int64_t step) const {
  const auto after = std::upper_bound(windows_.begin(), windows_.end(), step,
                                      [](int64_t s, const Window& window) { return s < window.first_step; });
  return after - windows_.begin() - 1;
}

int64_t Order::window_with(int64_t item) const {
  const auto after = std::upper_bound(windows_.begin(), windows_.end(), item,
                                      [](int64_t i, const Window& window) { return i < window.first_item; });
  return after - windows_.begin() - 1;
}

uint32_t Order::number_of(uint64_t ordinal) const {
  return filled_.empty() ? static_cast<uint32_t>(ordinal) : filled_[ordinal];
}

ItemPlace Order::place_in_index(int64_t item) const {
  const auto after = std::upper_bound(stride_start_.begin(), stride_start_.end(), item);
  const auto stride = static_cast<size_t>(after - stride_start_.begin() - 1);
  int64_t left = item - stride_start_[stride];
  size_t block = stride * kStride;
  for (; left >= block_items_[block]; ++block) left -= block_items_[block];
  return {static_cast<uint32_t>(block), static_cast<uint32_t>(left)};
}

std::shared_ptr<const Order::EpochStarts> Order::epoch_starts(int64_t epoch) const {
  {
    std::lock_guard lock(mutex_);
    if (auto known = recall(recent_epochs_, [&](const auto& one) { return one.epoch == epoch; }))
      return known;
  }
  const Permutation permute(num_filled_, order_key(options_.seed, epoch, kBlocks, 0));
  auto made = std::make_shared<EpochStarts>();
  made->epoch = epoch;
  made->starts.reserve(windows_.size());
  int64_t first = 0;  // item of the block, in the epoch
  for (uint64_t p = 0; made->starts.size() < windows_.size(); ++p) {
    const int64_t end = first + block_items_[number_of(permute(p))];
    for (; made->starts.size() < windows_.size() && windows_[made->starts.size()].first_item < end;)
      made->starts.push_back({static_cast<uint32_t>(p),
                              static_cast<uint32_t>(windows_[made->starts.size()].first_item - first)});
    first = end;
  }
  std::lock_guard lock(mutex_);
  remember<EpochStarts>(recent_epochs_, made, kRecentEpochs);
  return made;
}

std::shared_ptr<const Order::WindowBlocks> Order::window_blocks(int64_t epoch, int64_t window) const {
  {
    std::lock_guard lock(mutex_);
    const auto is_it = [&](const auto& one) { return one.epoch == epoch && one.window == window; };
    if (auto known = recall(recent_windows_, is_it)) return known;
  }
  const auto starts = epoch_starts(epoch);
  const Permutation permute(num_filled_, order_key(options_.seed, epoch, kBlocks, 0));
  const WindowStart start = starts->starts.at(static_cast<size_t>(window));
  const int64_t num_items = windows_[static_cast<size_t>(window)].num_items;
  auto made = std::make_shared<WindowBlocks>();
  made->epoch = epoch;
  made->window = window;
  int64_t first = -int64_t{start.item};
  for (uint64_t p = start.block; first < num_items; ++p) {
    const uint32_t block = number_of(permute(p));
    made->block.push_back(block);
    made->start.push_back(first);
    first += block_items_[block];
  }
  made->start.push_back(first);
  std::lock_guard lock(mutex_);
  remember<WindowBlocks>(recent_windows_, made, kRecentWindows);
  return made;
}

std::vector<int64_t> Order::blocks(int64_t epoch, int64_t window) const {
  if (options_.kind != OrderKind::kWindow) return {};
  const auto blocks = window_blocks(epoch, window);
  return {blocks->block.begin(), blocks->block.end()};
}

std::vector<ItemPlace> Order::items(int64_t epoch, int64_t window, int64_t first, int64_t last) const {
  const Window& place = windows_.at(static_cast<size_t>(window));
  CHILIAD_CHECK(0 <= first && first <= last && last <= place.num_items, "items {} to {}", first, last);
  std::vector<ItemPlace> found;
  found.reserve(static_cast<size_t>(last - first));
  if (options_.kind == OrderKind::kSequential) {
    for (int64_t i = first; i < last; ++i) found.push_back(place_in_index(place.first_item + i));
    return found;
  }
  const Permutation permute(static_cast<uint64_t>(place.num_items),
                            order_key(options_.seed, epoch, kItems, window));
  if (options_.kind == OrderKind::kFull) {
    for (int64_t i = first; i < last; ++i)
      found.push_back(place_in_index(static_cast<int64_t>(permute(static_cast<uint64_t>(i)))));
    return found;
  }
  const auto blocks = window_blocks(epoch, window);
  for (int64_t i = first; i < last; ++i) {
    const auto at = static_cast<int64_t>(permute(static_cast<uint64_t>(i)));
    const auto after = std::upper_bound(blocks->start.begin(), blocks->start.end(), at);
    const auto p = static_cast<size_t>(after - blocks->start.begin()) - 1;
    found.push_back({blocks->block[p], static_cast<uint32_t>(at - blocks->start[p])});
  }
  return found;
}

}  // namespace chiliad::stepplan
