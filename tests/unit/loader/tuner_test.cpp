#include "chiliad/loader/tuner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>

#include "chiliad/base/rng.h"

namespace chiliad::loader {
namespace {

/// A loader and its consumer in made-up time: steps cost thread-seconds, and are taken one after another.
struct Pipeline {
  double consume = 0.1;  ///< seconds that the consumer needs for a step
  double load = 0.25;    ///< thread-seconds of a step
  double spread = 0.2;   ///< of the load, as a fraction
  double latency = 0.0;  ///< seconds that a step waits for storage whatever the threads
  double blocked = 0.0;  ///< share of the time that the planner waits for memory

  struct Outcome {
    double wait = 0.0;  ///< share of the last third of the time
    TunerSettings settings;
    int64_t changes = 0;
    int64_t late_changes = 0;  ///< in the last third
    int most_threads = 0;
  };

  [[nodiscard]] Outcome run(Tuner& tuner, int steps) const {
    Rng rng({9});
    double ready = 0.0;
    double taken = 0.0;  // when the consumer took the last step
    double waited = 0.0;
    double busy = 0.0;
    double late_from = 0.0;
    double late_wait = 0.0;
    Outcome outcome;
    std::deque<double> takes;  // of the steps ahead
    for (int step = 0; step < steps; ++step) {
      const auto& settings = tuner.settings();
      outcome.most_threads = std::max(outcome.most_threads, settings.threads);
      while (static_cast<int64_t>(takes.size()) > settings.depth) takes.pop_front();
      const double room = static_cast<int64_t>(takes.size()) < settings.depth ? 0.0 : takes.front();
      const double cost = load * (1.0 + spread * (2.0 * rng.uniform() - 1.0));
      const double from = std::max(ready, room);
      // With a step in flight for each one that there is room for, latencies overlap.
      ready = from + cost / settings.threads + latency / static_cast<double>(settings.depth);
      busy += cost;
      const double wanted = taken + consume;
      taken = std::max(wanted, ready);
      waited += taken - wanted;
      takes.push_back(taken);
      const int64_t before = tuner.num_changes();
      const auto time = [](double s) { return Nanoseconds(static_cast<int64_t>(s * 1e9)); };
      tuner.add_step({time(taken), time(waited), time(busy), time(blocked * taken)});
      if (step == steps * 2 / 3) {
        late_from = taken;
        late_wait = waited;
      }
      if (step > steps * 2 / 3) outcome.late_changes += tuner.num_changes() - before;
    }
    outcome.wait = (waited - late_wait) / (taken - late_from);
    outcome.settings = tuner.settings();
    outcome.changes = tuner.num_changes();
    return outcome;
  }
};

TEST(TunerTest, GetsRidOfTheWaitFromOneThreadAndOneStep) {
  Tuner tuner({16, 64}, {1, 1});
  const auto end = Pipeline().run(tuner, 600);
  EXPECT_LT(end.wait, 0.01);
  EXPECT_GE(end.settings.threads, 3);
}

TEST(TunerTest, ComesDownFromManyThreads) {
  Tuner tuner({64, 64}, {32, 4});
  const auto end = Pipeline().run(tuner, 2000);
  EXPECT_LT(end.settings.threads, 10);
  EXPECT_LT(end.wait, 0.01);
}

TEST(TunerTest, StaysWhereItIsOnceNothingWaits) {
  Tuner tuner({16, 64}, {1, 1});
  const auto end = Pipeline().run(tuner, 3000);
  EXPECT_LE(end.late_changes, 2);
  EXPECT_LE(end.changes, 20);
}

TEST(TunerTest, NeverUsesMoreThreadsThanItMay) {
  Tuner tuner({2, 8}, {1, 1});
  const auto end = Pipeline{.load = 2.0}.run(tuner, 500);
  EXPECT_EQ(end.most_threads, 2);
  EXPECT_LE(end.settings.depth, 8);
}

TEST(TunerTest, LooksFurtherAheadWhereStorageIsSlowToAnswer) {
  Tuner tuner({4, 64}, {2, 1});
  const auto end = Pipeline{.load = 0.01, .latency = 0.5}.run(tuner, 600);
  EXPECT_GE(end.settings.depth, 5);
  EXPECT_LT(end.wait, 0.01);
}

TEST(TunerTest, LooksFurtherAheadWhereThereAreNoMoreThreads) {
  Tuner tuner({2, 64}, {2, 1});
  const auto end = Pipeline{.load = 0.19, .spread = 0.9}.run(tuner, 600);
  EXPECT_GT(end.settings.depth, 1);
  EXPECT_LT(end.wait, 0.05);
}

TEST(TunerTest, AsksForNothingWhereMemoryIsTheLimit) {
  Tuner tuner({16, 64}, {4, 4});
  const auto end = Pipeline{.load = 0.01, .latency = 5.0, .blocked = 0.9}.run(tuner, 300);
  EXPECT_EQ(end.settings, (TunerSettings{4, 4}));
}

TEST(TunerTest, LeavesAGoodStartAlone) {
  Tuner tuner({16, 64}, {4, 4});
  const auto end = Pipeline().run(tuner, 300);
  EXPECT_EQ(end.changes, 0);
}

TEST(TunerTest, TheFirstDataMayTakeItsTime) {
  Tuner tuner({16, 64}, {4, 4});
  const auto at = [](int64_t s) { return Nanoseconds(std::chrono::seconds(s)); };
  for (int step = 0; step < 100; ++step)
    EXPECT_FALSE(tuner.add_step({.now = at(50 + step), .waited = at(50), .busy = at(4 * (50 + step))}));
}

TEST(TunerTest, SaysTheSameOfTheSameInputs) {
  Tuner a({16, 64}, {1, 1});
  Tuner b({16, 64}, {1, 1});
  EXPECT_EQ(Pipeline().run(a, 400).settings, Pipeline().run(b, 400).settings);
}

}  // namespace
}  // namespace chiliad::loader
