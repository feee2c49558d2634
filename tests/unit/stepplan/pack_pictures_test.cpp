// Mode pack of pictures: rows of any shapes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "chiliad/base/error.h"
#include "chiliad/base/rng.h"
#include "chiliad/stepplan/pack.h"
#include "tests/support/synthetic_index.h"

namespace chiliad::stepplan {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr int32_t kPatch = 16;

PackOptions options_of(int ranks, int64_t max_tokens) {
  PackOptions options;
  options.num_ranks = ranks;
  options.max_tokens = max_tokens;
  options.work = test::transformer_work();
  options.positions = [](Bucket bucket, int64_t) {
    return int64_t{bucket.width / kPatch} * (bucket.height / kPatch);
  };
  return options;
}

/// Random shapes of 1 to 12 patches a side, random captions.
struct Drawn {
  std::vector<Bucket> buckets;
  Step step;
};
Drawn draw(uint64_t seed, size_t count) {
  Rng rng({seed, 77});
  Drawn drawn;
  const size_t shapes = 1 + rng.below(20);
  const auto side = [&] { return kPatch * static_cast<int32_t>(1 + rng.below(12)); };
  for (size_t i = 0; i < shapes; ++i) drawn.buckets.push_back({side(), side()});
  for (size_t i = 0; i < count; ++i) {
    Item item;
    item.sample = static_cast<int64_t>(1000 + i);
    item.position = static_cast<uint32_t>(i);
    item.bucket = static_cast<int32_t>(rng.below(shapes));
    item.num_tokens = static_cast<uint32_t>(1 + rng.below(40));
    drawn.step.items.push_back(item);
  }
  return drawn;
}

/// Items and budgets of many sizes, from a step of one item on.
class PackPicturesTest : public testing::TestWithParam<int> {
 protected:
  [[nodiscard]] uint64_t seed() const { return static_cast<uint64_t>(GetParam()); }
  [[nodiscard]] int ranks() const { return 1 + GetParam() % 5; }
  [[nodiscard]] int64_t budget() const { return 144 + 97 * (GetParam() % 7); }
  Drawn drawn_ = draw(seed(), GetParam() == 0 ? 1 : 1 + seed() * 13 % 100);
  PackedStep packed_ = pack(drawn_.step, drawn_.buckets, options_of(ranks(), budget()));
};

TEST_P(PackPicturesTest, EveryItemIsThereOnce) {
  std::vector<uint32_t> positions;
  for (const auto& slots : packed_.slots)
    for (const auto& slot : slots)
      for (const Item& item : slot.items) positions.push_back(item.position);
  std::sort(positions.begin(), positions.end());
  ASSERT_EQ(positions.size(), drawn_.step.items.size());
  for (size_t i = 0; i < positions.size(); ++i) ASSERT_EQ(positions[i], i);
}

TEST_P(PackPicturesTest, RowsStayWithinTheBudget) {
  const auto options = options_of(ranks(), budget());
  for (const auto& slots : packed_.slots) {
    for (const auto& slot : slots) {
      int64_t positions = 0;
      for (const Item& item : slot.items)
        positions += options.positions(drawn_.buckets[static_cast<size_t>(item.bucket)], item.num_tokens);
      EXPECT_LE(positions, budget());
    }
  }
}

TEST_P(PackPicturesTest, RanksHaveAsManySlots) {
  ASSERT_EQ(packed_.slots.size(), static_cast<size_t>(ranks()));
  for (const auto& slots : packed_.slots) EXPECT_EQ(slots.size(), packed_.slots[0].size());
}

TEST_P(PackPicturesTest, ShapesLieTogetherInPlanOrder) {
  for (const auto& slots : packed_.slots) {
    for (const auto& slot : slots) {
      EXPECT_TRUE(std::is_sorted(slot.items.begin(), slot.items.end(), [](const Item& a, const Item& b) {
        return std::pair(a.bucket, a.position) < std::pair(b.bucket, b.position);
      }));
    }
  }
}

TEST_P(PackPicturesTest, IsTheSameAgain) {
  const auto again = pack(drawn_.step, drawn_.buckets, options_of(ranks(), budget()));
  for (size_t rank = 0; rank < again.slots.size(); ++rank) {
    for (size_t slot = 0; slot < again.slots[rank].size(); ++slot) {
      const auto& a = packed_.slots[rank][slot].items;
      const auto& b = again.slots[rank][slot].items;
      EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end(),
                             [](const Item& x, const Item& y) { return x.position == y.position; }));
    }
  }
}

// The overhead is a row's, once; the rest of the work adds up.
TEST_P(PackPicturesTest, WorkIsThatOfItsItemsAndOneOverhead) {
  const auto work = test::transformer_work(0.0);
  for (const auto& slots : packed_.slots) {
    for (const auto& slot : slots) {
      if (slot.items.empty()) continue;
      double sum = 0.3;
      for (const Item& item : slot.items)
        sum += work(drawn_.buckets[static_cast<size_t>(item.bucket)], 1, item.num_tokens);
      EXPECT_NEAR(slot.work, sum, 1e-9 * sum);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Draws, PackPicturesTest, testing::Range(0, 40));

TEST(PackPicturesOfManyTest, RanksHaveLikeWork) {
  const Drawn drawn = draw(3, 400);
  EXPECT_LT(pack(drawn.step, drawn.buckets, options_of(4, 1000)).imbalance(), 1.03);
}

TEST(PackPicturesOfManyTest, WeightsOfZeroAreNotCounted) {
  Drawn drawn = draw(4, 30);
  drawn.step.items[7].weight = 0.0F;
  EXPECT_EQ(pack(drawn.step, drawn.buckets, options_of(2, 1000)).num_items, 29);
}

TEST(PackPicturesOfManyTest, PicturesWithoutRoomAreNamed) {
  Drawn drawn = draw(5, 1);
  drawn.buckets = {{320, 160}};
  drawn.step.items[0].bucket = 0;
  EXPECT_THAT([&] { (void)pack(drawn.step, drawn.buckets, options_of(1, 199)); },
              ThrowsMessage<InvalidInput>(HasSubstr("data.micro_batch_tokens: expected at least the 200 "
                                                    "positions of a picture of 320 x 160 pixels, got 199")));
}

}  // namespace
}  // namespace chiliad::stepplan
