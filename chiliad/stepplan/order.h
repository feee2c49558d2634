#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace chiliad::stepplan {

enum class OrderKind { kWindow, kFull, kSequential };

/// Throws InvalidInput for anything but window, full, sequential.
[[nodiscard]] OrderKind parse_order(const std::string& name);

/// A run of an epoch's items that is shuffled by itself and cut evenly into steps.
struct Window {
  int64_t first_item = 0;  ///< in the epoch's order
  int64_t num_items = 0;
  int64_t first_step = 0;  ///< in the epoch
  int64_t num_steps = 0;

  /// First item of step `j` of the window, counted in the window; j in [0, num_steps].
  [[nodiscard]] int64_t step_start(int64_t j) const { return j * num_items / num_steps; }
};

/// An item by where it lies: the `item`-th of those of a block.
struct ItemPlace {
  uint32_t block = 0;
  uint32_t item = 0;
  auto operator<=>(const ItemPlace&) const = default;
};

struct OrderOptions {
  OrderKind kind = OrderKind::kWindow;
  int64_t window_blocks = 16;
  int64_t batch = 32;
  uint64_t seed = 0;
};

/// The order of an epoch's items: keyed permutation of blocks, cut into windows of equal numbers of items,
/// permuted inside each. The windows are the same in every epoch, the blocks in them are not. The first call
/// for an epoch takes O(blocks), the others O(blocks of the window). Memory: about 5 bytes a block and 32 a
/// window, and 8 a window for each of the epochs asked for last. Thread-safe.
class Order {
 public:
  /// block_items: items of each block; blocks of none are left out.
  Order(std::vector<uint32_t> block_items, const OrderOptions& options);

  [[nodiscard]] const std::vector<Window>& windows() const { return windows_; }
  [[nodiscard]] int64_t num_items() const { return num_items_; }
  [[nodiscard]] int64_t steps_per_epoch() const;
  /// Number of the window that holds step `step` of an epoch.
  [[nodiscard]] int64_t window_of(int64_t step) const;
  /// Number of the window that holds item `item` of an epoch's order.
  [[nodiscard]] int64_t window_with(int64_t item) const;
  /// Items [first, last) of a window in the order of `epoch`.
  [[nodiscard]] std::vector<ItemPlace> items(int64_t epoch, int64_t window, int64_t first,
                                             int64_t last) const;
  /// Blocks that a window draws from.
  [[nodiscard]] std::vector<int64_t> blocks(int64_t epoch, int64_t window) const;

 private:
  /// Where windows begin in an epoch's order of blocks.
  struct WindowStart {
    uint32_t block = 0;  // in that order
    uint32_t item = 0;   // of the block
  };
  struct EpochStarts {
    int64_t epoch = 0;
    std::vector<WindowStart> starts;
  };
  /// The blocks of a window in the epoch's order.
  struct WindowBlocks {
    int64_t epoch = 0;
    int64_t window = 0;
    std::vector<int64_t>
        start;  // first item of each block, in the window; the first is 0 or less; and the end
    std::vector<uint32_t> block;
  };

  void cut_windows();
  [[nodiscard]] uint32_t number_of(uint64_t ordinal) const;
  [[nodiscard]] ItemPlace place_in_index(int64_t item) const;
  [[nodiscard]] std::shared_ptr<const EpochStarts> epoch_starts(int64_t epoch) const;
  [[nodiscard]] std::shared_ptr<const WindowBlocks> window_blocks(int64_t epoch, int64_t window) const;

  OrderOptions options_;
  std::vector<uint32_t> block_items_;
  std::vector<uint32_t> filled_;       // blocks with items, where some have none
  std::vector<int64_t> stride_start_;  // first item, in the order of the index, of each 64th block
  uint64_t num_filled_ = 0;
  int64_t num_items_ = 0;
  std::vector<Window> windows_;
  mutable std::mutex mutex_;  // guards the rest
  // Shared with the calls that read them, until they return; used last first.
  mutable std::list<std::shared_ptr<const EpochStarts>> recent_epochs_;
  mutable std::list<std::shared_ptr<const WindowBlocks>> recent_windows_;
};

}  // namespace chiliad::stepplan
