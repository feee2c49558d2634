#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "chiliad/stepplan/pack.h"
#include "chiliad/stepplan/plan.h"
#include "tests/support/synthetic_index.h"

namespace chiliad::stepplan {
namespace {

class PlantedBug {
 public:
  explicit PlantedBug(const char* name) { setenv("CHILIAD_PLANTED_BUG", name, 1); }
  ~PlantedBug() { unsetenv("CHILIAD_PLANTED_BUG"); }
  PlantedBug(const PlantedBug&) = delete;
  PlantedBug& operator=(const PlantedBug&) = delete;
};

class StepplanMutantTest : public ::testing::Test {
 protected:
  StepplanMutantTest() : index_(test::synthetic_index(test::draw_sizes({{10, 10, 3}, {10, 30, 9}}, 200, 1))) {
    spec::DataOptions options;
    options.batch = 16;
    plan_ = std::make_unique<Plan>(index_, options, 1, test::byte_tokens(index_));
  }

  /// The audit of resuming: an epoch that is stopped and resumed by its cursor holds every item once.
  bool resumed_epoch_is_exact() const {
    std::map<int64_t, int> seen;
    const auto run = [&](int64_t first, int64_t end) {
      for (int64_t step = first; step < end; ++step) {
        for (const Item& item : plan_->select(step, {}).items) ++seen[item.sample];
      }
    };
    const int64_t stop = plan_->steps_per_epoch() / 2;
    run(0, stop);
    run(Cursor::from_json(plan_->cursor(stop, {}).to_json()).next_step, plan_->steps_per_epoch());
    for (const auto& [sample, times] : seen) {
      if (times != 1) return false;
    }
    return static_cast<int64_t>(seen.size()) == plan_->items_per_epoch();
  }

  /// The audit of packing: all ranks together hold each item of a step once.
  bool ranks_hold_the_step() const {
    const Step step = plan_->select(3, {});
    std::map<uint32_t, int> seen;
    for (const auto& slots : pack(step, plan_->buckets(), {3, 32, test::transformer_work()}).slots) {
      for (const auto& slot : slots) {
        for (const Item& item : slot.items) {
          if (item.sample != step.items[item.position].sample) return false;
          ++seen[item.position];
        }
      }
    }
    return seen.size() == step.items.size();
  }

  index::Index index_;
  std::unique_ptr<Plan> plan_;
};

TEST_F(StepplanMutantTest, AuditCatchesACursorOffByOne) {
  ASSERT_TRUE(resumed_epoch_is_exact());
  const PlantedBug bug("cursor_off_by_one");
  EXPECT_FALSE(resumed_epoch_is_exact());
}

TEST_F(StepplanMutantTest, AuditCatchesPermutedItems) {
  ASSERT_TRUE(ranks_hold_the_step());
  const PlantedBug bug("permuted_items");
  EXPECT_FALSE(ranks_hold_the_step());
}

/// The audit of mixing: no source shows an item twice before it has shown all.
bool mixed_epochs_are_exact() {
  const auto index =
      index::Index::concatenate({test::synthetic_index(test::draw_sizes({{10, 10, 3}, {10, 30, 9}}, 200, 1)),
                                 test::synthetic_index(test::draw_sizes({{10, 10, 3}}, 80, 2))});
  spec::DataOptions options;
  options.batch = 16;
  options.sources.resize(2);
  options.sources[0].name = "a";
  options.sources[1].name = "b";
  const Plan plan(index, options, 1, test::byte_tokens(index));
  std::map<int64_t, int64_t> times;
  std::map<bool, int64_t> items;
  for (int64_t step = 0; step < 20; ++step) {
    for (const Item& item : plan.select(step, {}).items) {
      const bool second = item.sample >= 200;
      if (times[item.sample]++ != items[second]++ / (second ? 80 : 200)) return false;
    }
  }
  return true;
}

TEST(MixMutantTest, AuditCatchesItemsGivenTwice) {
  ASSERT_TRUE(mixed_epochs_are_exact());
  const PlantedBug bug("mixed_items_twice");
  EXPECT_FALSE(mixed_epochs_are_exact());
}

}  // namespace
}  // namespace chiliad::stepplan
