#include <gtest/gtest.h>

#include <cstdlib>

#include "chiliad/stepplan/bad_rates.h"
#include "tests/support/synthetic_index.h"

namespace chiliad::stepplan {
namespace {

/// The audit of the bounds: a set of which a third is bad does not get through.
bool a_bad_third_is_stopped() {
  const auto index = test::synthetic_index(std::vector<test::PictureSize>(900, {32, 32, 10}));
  const SampleGroups groups(index);
  spec::DataOptions options;
  options.batch = 30;
  const Plan plan(index, options, 1, [](uint32_t, uint32_t) { return 4U; });
  BadRates rates(BadRateOptions{});
  Journal journal;
  for (int64_t step = 0; step < plan.steps_per_epoch(); ++step) {
    const Step selected = plan.select(step, journal);
    std::vector<Amendment> found;
    for (const Item& item : selected.items) {
      if (item.weight > 0.0F && item.sample % 3 == 0)
        found.push_back({step + 1, item.sample, "k: picture: no"});
    }
    for (const auto& amendment : found) journal.add(amendment);
    if (rates.add_step(count_groups(selected, groups), found, groups).has_value()) return true;
  }
  return false;
}

TEST(BadRatesMutantTest, AuditCatchesBoundsThatAreIgnored) {
  ASSERT_TRUE(a_bad_third_is_stopped());
  setenv("CHILIAD_PLANTED_BUG", "bad_rates_ignored", 1);
  EXPECT_FALSE(a_bad_third_is_stopped());
  unsetenv("CHILIAD_PLANTED_BUG");
}

}  // namespace
}  // namespace chiliad::stepplan
