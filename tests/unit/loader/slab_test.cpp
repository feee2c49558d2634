#include "chiliad/loader/slab.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "chiliad/base/rng.h"

namespace chiliad::loader {
namespace {

/// An allocator that knows what is out.
struct Ledger {
  std::map<std::byte*, int64_t> out;
  int64_t bytes = 0;
  int64_t most = 0;

  SlabAllocator allocator() {
    return {[this](int64_t size) {
              auto* memory = new std::byte[static_cast<size_t>(size)];
              out[memory] = size;
              bytes += size;
              most = std::max(most, bytes);
              return memory;
            },
            [this](std::byte* memory, int64_t size) {
              EXPECT_EQ(out.at(memory), size);
              out.erase(memory);
              bytes -= size;
              delete[] memory;
            }};
  }
};

TEST(SlabTest, UsesBlocksAgain) {
  Ledger ledger;
  Slab slab(1 << 20, ledger.allocator());
  std::byte* first = slab.take(100'000).get();
  EXPECT_EQ(slab.take(101'000).get(), first);  // of the same size, as blocks go
  EXPECT_EQ(slab.stats().num_allocations, 1);
}

TEST(SlabTest, GivesAllBackAtTheEnd) {
  Ledger ledger;
  { const Slab slab(1 << 20, ledger.allocator()); }
  std::shared_ptr<std::byte> outlives;
  {
    Slab slab(1 << 20, ledger.allocator());
    outlives = slab.take(10'000);
    (void)slab.take(50'000);
  }
  EXPECT_EQ(ledger.out.size(), 2U);
  outlives.reset();
  EXPECT_EQ(ledger.bytes, 0);
}

TEST(SlabTest, BlocksAreLittleLargerThanAsked) {
  for (int64_t bytes = 50'000; bytes < 50'000'000; bytes = bytes * 9 / 8) {
    EXPECT_GE(Slab::block_bytes(bytes), bytes);
    EXPECT_LE(Slab::block_bytes(bytes), bytes + bytes / 8 + 4096);
  }
}

TEST(SlabTest, NeverAllocatesMoreThanTheBudgetOrWhatIsTaken) {
  Ledger ledger;
  constexpr int64_t kBudget = 1 << 20;
  Slab slab(kBudget, ledger.allocator());
  Rng rng({5});
  std::vector<std::shared_ptr<std::byte>> taken;
  for (int i = 0; i < 5000; ++i) {
    if (!taken.empty() && (taken.size() > 12 || rng.uniform() < 0.5)) {
      taken.erase(taken.begin() + static_cast<ptrdiff_t>(rng.below(taken.size())));
    } else {
      taken.push_back(slab.take(static_cast<int64_t>(1 + rng.below(200'000))));
    }
    ASSERT_LE(ledger.bytes, std::max(kBudget, slab.stats().most_taken));
    ASSERT_EQ(ledger.bytes, slab.stats().allocated);
  }
  EXPECT_GT(slab.stats().num_allocations, 100);
}

TEST(SlabTest, MakesRoomForOtherSizes) {
  Ledger ledger;
  Slab slab(1 << 20, ledger.allocator());
  (void)slab.take(900'000);
  const auto other = slab.take(600'000);
  EXPECT_EQ(ledger.out.size(), 1U);
}

TEST(PageAllocatorTest, GivesWritableMemory) {
  const SlabAllocator pages = page_allocator();
  std::byte* memory = pages.allocate(10'000);
  memory[9'999] = std::byte{1};
  EXPECT_EQ(memory[0], std::byte{0});
  pages.release(memory, 10'000);
}

}  // namespace
}  // namespace chiliad::loader
