#pragma once

#include <cstdint>
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

struct OrderOptions {
  OrderKind kind = OrderKind::kWindow;
  int64_t window_blocks = 16;
  int64_t batch = 32;
  uint64_t seed = 0;
};

/// The order of an epoch's items: keyed permutation of blocks, cut into windows of equal numbers of items,
/// permuted inside each. The windows are the same in every epoch, the blocks in them are not. Thread-safe.
class Order {
 public:
  /// block_items: items of each block, none of them 0.
  Order(const std::vector<int64_t>& block_items, const OrderOptions& options);

  [[nodiscard]] const std::vector<Window>& windows() const { return windows_; }
  [[nodiscard]] int64_t num_items() const { return block_start_.back(); }
  [[nodiscard]] int64_t steps_per_epoch() const;
  /// Number of the window that holds step `step` of an epoch.
  [[nodiscard]] int64_t window_of(int64_t step) const;
  /// Items [first, last) of a window in the order of `epoch`.
  [[nodiscard]] std::vector<int64_t> items(int64_t epoch, int64_t window, int64_t first, int64_t last) const;

 private:
  struct EpochBlocks {
    int64_t epoch = 0;
    std::vector<int64_t> start;  // first item of the p-th block of the epoch, and the end
    std::vector<uint32_t> block;
  };

  void cut_windows();
  [[nodiscard]] std::shared_ptr<const EpochBlocks> epoch_blocks(int64_t epoch) const;

  OrderOptions options_;
  std::vector<int64_t> block_start_;
  std::vector<Window> windows_;
  mutable std::mutex mutex_;  // guards recent_
  // Shared with the `items` calls that read it, until they return.
  mutable std::shared_ptr<const EpochBlocks> recent_;
};

}  // namespace chiliad::stepplan
