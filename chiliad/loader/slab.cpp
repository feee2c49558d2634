#include "chiliad/loader/slab.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>

#include "chiliad/base/error.h"

namespace chiliad::loader {
namespace {

constexpr int64_t kSmallestBlock = 4096;
constexpr int64_t kStepsPerDoubling = 8;

}  // namespace

SlabAllocator page_allocator() {
  return {[](int64_t bytes) {
            void* memory = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (memory == MAP_FAILED) throw std::bad_alloc();
            return static_cast<std::byte*>(memory);
          },
          [](std::byte* memory, int64_t bytes) { ::munmap(memory, static_cast<size_t>(bytes)); }};
}

Slab::Slab(int64_t budget_bytes, SlabAllocator allocator)
    : core_(std::make_shared<Core>(budget_bytes, std::move(allocator))) {}

int64_t Slab::block_bytes(int64_t bytes) {
  const int64_t least = std::max(bytes, kSmallestBlock);
  const auto power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(least)));
  const int64_t step = std::max(power / kStepsPerDoubling, kSmallestBlock);
  return (least + step - 1) / step * step;
}

std::shared_ptr<std::byte> Slab::take(int64_t bytes) {
  const Block block = core_->take(block_bytes(bytes));
  return {block.memory, [core = core_, block](std::byte*) { core->give_back(block); }};
}

Slab::Stats Slab::stats() const {
  std::lock_guard lock(core_->mutex);
  return core_->stats;
}

Slab::Core::~Core() {
  for (const Block& block : kept) allocator.release(block.memory, block.bytes);
}

Slab::Block Slab::Core::take(int64_t bytes) {
  std::lock_guard lock(mutex);
  const auto same = std::find_if(kept.begin(), kept.end(), [&](const Block& b) { return b.bytes == bytes; });
  stats.taken += bytes;
  stats.most_taken = std::max(stats.most_taken, stats.taken);
  if (same != kept.end()) {
    const Block block = *same;
    kept.erase(same);
    return block;
  }
  while (!kept.empty() && stats.allocated + bytes > bound()) {
    const Block oldest = kept.front();
    kept.erase(kept.begin());
    release(oldest);
  }
  const Block block{allocator.allocate(bytes), bytes};
  ++stats.num_allocations;
  stats.allocated += bytes;
  stats.most_allocated = std::max(stats.most_allocated, stats.allocated);
  return block;
}

void Slab::Core::give_back(const Block& block) {
  std::lock_guard lock(mutex);
  stats.taken -= block.bytes;
  if (stats.allocated > bound()) {
    release(block);
  } else {
    kept.push_back(block);
  }
}

void Slab::Core::release(const Block& block) {
  stats.allocated -= block.bytes;
  allocator.release(block.memory, block.bytes);
}

}  // namespace chiliad::loader
