#include "chiliad/stepplan/order.h"

#include <fmt/core.h>

#include <algorithm>

#include "chiliad/base/error.h"
#include "chiliad/base/rng.h"
#include "chiliad/stepplan/permutation.h"

namespace chiliad::stepplan {
namespace {

// A window of few steps would cut the steps much below `batch`.
constexpr int64_t kMinStepsInWindow = 8;

// Second part of the keys of Draw::kOrder.
constexpr uint64_t kBlocks = 0;
constexpr uint64_t kItems = 1;

uint64_t order_key(uint64_t seed, int64_t epoch, uint64_t what, int64_t window) {
  return Rng({seed, static_cast<uint64_t>(epoch), static_cast<uint64_t>(Draw::kOrder), what,
              static_cast<uint64_t>(window)})
      .next_u64();
}

}  // namespace

OrderKind parse_order(const std::string& name) {
  if (name == "window") return OrderKind::kWindow;
  if (name == "full") return OrderKind::kFull;
  if (name == "sequential") return OrderKind::kSequential;
  throw InvalidInput("data.order", fmt::format("expected window, full or sequential, got '{}'", name));
}

Order::Order(const std::vector<int64_t>& block_items, const OrderOptions& options) : options_(options) {
  CHILIAD_CHECK_GT(options.batch, 0);
  CHILIAD_CHECK_GT(options.window_blocks, 0);
  block_start_.reserve(block_items.size() + 1);
  block_start_.push_back(0);
  for (const int64_t count : block_items) {
    CHILIAD_CHECK_GT(count, 0);
    block_start_.push_back(block_start_.back() + count);
  }
  CHILIAD_CHECK_GT(num_items(), 0);
  cut_windows();
}

void Order::cut_windows() {
  const int64_t total = num_items();
  int64_t count = 1;
  if (options_.kind == OrderKind::kWindow) {
    const auto num_blocks = static_cast<int64_t>(block_start_.size()) - 1;
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

std::shared_ptr<const Order::EpochBlocks> Order::epoch_blocks(int64_t epoch) const {
  {
    std::lock_guard lock(mutex_);
    if (recent_ != nullptr && recent_->epoch == epoch) return recent_;
  }
  const size_t count = block_start_.size() - 1;
  const Permutation permute(count, order_key(options_.seed, epoch, kBlocks, 0));
  auto made = std::make_shared<EpochBlocks>();
  made->epoch = epoch;
  made->block.reserve(count);
  made->start.reserve(count + 1);
  made->start.push_back(0);
  for (size_t p = 0; p < count; ++p) {
    const auto block = static_cast<size_t>(permute(p));
    made->block.push_back(static_cast<uint32_t>(block));
    made->start.push_back(made->start.back() + block_start_[block + 1] - block_start_[block]);
  }
  std::lock_guard lock(mutex_);
  recent_ = made;
  return made;
}

std::vector<int64_t> Order::items(int64_t epoch, int64_t window, int64_t first, int64_t last) const {
  const Window& place = windows_.at(static_cast<size_t>(window));
  CHILIAD_CHECK(0 <= first && first <= last && last <= place.num_items, "items {} to {}", first, last);
  std::vector<int64_t> found;
  found.reserve(static_cast<size_t>(last - first));
  if (options_.kind == OrderKind::kSequential) {
    for (int64_t i = first; i < last; ++i) found.push_back(place.first_item + i);
    return found;
  }
  const Permutation permute(static_cast<uint64_t>(place.num_items),
                            order_key(options_.seed, epoch, kItems, window));
  if (options_.kind == OrderKind::kFull) {
    for (int64_t i = first; i < last; ++i)
      found.push_back(static_cast<int64_t>(permute(static_cast<uint64_t>(i))));
    return found;
  }
  const auto blocks = epoch_blocks(epoch);
  for (int64_t i = first; i < last; ++i) {
    const int64_t at = place.first_item + static_cast<int64_t>(permute(static_cast<uint64_t>(i)));
    const auto after = std::upper_bound(blocks->start.begin(), blocks->start.end(), at);
    const auto p = static_cast<size_t>(after - blocks->start.begin()) - 1;
    found.push_back(block_start_[blocks->block[p]] + at - blocks->start[p]);
  }
  return found;
}

}  // namespace chiliad::stepplan
