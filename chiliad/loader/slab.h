#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace chiliad::loader {

/// Where the memory of batches comes from; pinned, where a device copies from it. Aligned to 64 bytes.
struct SlabAllocator {
  std::function<std::byte*(int64_t bytes)> allocate;
  std::function<void(std::byte* memory, int64_t bytes)> release;
};
/// Whole pages of the kernel, which go back to it.
[[nodiscard]] SlabAllocator page_allocator();

/// Memory of batches, used again instead of allocated anew. What is allocated never exceeds the larger of the
/// budget and the most that was taken at once. Thread-safe; blocks may outlive it.
class Slab {
 public:
  Slab(int64_t budget_bytes, SlabAllocator allocator);

  /// What a block of so many bytes takes from the budget: somewhat more, so that blocks fit others again.
  [[nodiscard]] static int64_t block_bytes(int64_t bytes);
  /// Undefined contents. Returns to the slab when the last copy is gone.
  [[nodiscard]] std::shared_ptr<std::byte> take(int64_t bytes);

  struct Stats {
    int64_t allocated = 0;  ///< bytes, taken or kept
    int64_t taken = 0;
    int64_t most_taken = 0;
    int64_t most_allocated = 0;
    int64_t num_allocations = 0;
  };
  [[nodiscard]] Stats stats() const;

 private:
  struct Block {
    std::byte* memory = nullptr;
    int64_t bytes = 0;
  };
  /// Shared with the blocks that are taken, until the last of them is back.
  struct Core {
    Core(int64_t budget, SlabAllocator made) : budget_bytes(budget), allocator(std::move(made)) {}
    ~Core();
    Core(const Core&) = delete;
    Core& operator=(const Core&) = delete;
    Block take(int64_t bytes);
    void give_back(const Block& block);
    void release(const Block& block);
    [[nodiscard]] int64_t bound() const { return std::max(budget_bytes, stats.most_taken); }

    const int64_t budget_bytes;
    const SlabAllocator allocator;
    std::mutex mutex;  // guards the rest
    std::vector<Block> kept;
    Stats stats;
  };
  std::shared_ptr<Core> core_;
};

}  // namespace chiliad::loader
