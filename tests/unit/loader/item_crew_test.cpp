#include "chiliad/loader/item_crew.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <set>

#include "chiliad/image/image.h"
#include "chiliad/loader/item_cost.h"

namespace chiliad::loader {
namespace {

using ::testing::ElementsAre;

TEST(ItemCrewTest, WorksInTheOrderOfKeys) {
  std::vector<int> done;
  ItemCrew crew(1, 1, "test");
  std::latch all(4);
  const auto task = [&](double key, int name) {
    return ItemCrew::Task{key, [&, name](int) {
                            done.push_back(name);
                            all.count_down();
                          }};
  };
  crew.add({task(3, 3), task(1, 1), task(2, 20), task(2, 21)});
  all.wait();
  crew.close();
  EXPECT_THAT(done, ElementsAre(1, 20, 21, 3));
}

TEST(ItemCrewTest, OnlyActiveThreadsWork) {
  ItemCrew crew(4, 1, "test");
  std::mutex mutex;
  std::set<int> seen;
  const auto work = [&](int count) {
    std::latch all(count);
    std::vector<ItemCrew::Task> tasks;
    for (int i = 0; i < count; ++i) {
      tasks.push_back({0.0, [&](int thread) {
                         {
                           std::lock_guard lock(mutex);
                           seen.insert(thread);
                         }
                         all.count_down();
                       }});
    }
    crew.add(std::move(tasks));
    all.wait();
  };
  work(50);
  EXPECT_THAT(seen, ElementsAre(0));
  crew.set_active(2);
  work(50);
  EXPECT_FALSE(seen.contains(2));
}

TEST(ItemCrewTest, AllThreadsThatAreActiveWorkAtOnce) {
  ItemCrew crew(3, 1, "test");
  crew.set_active(3);
  std::latch together(3);
  std::vector<ItemCrew::Task> tasks(3, {0.0, [&](int) { together.arrive_and_wait(); }});
  crew.add(std::move(tasks));
  together.wait();
}

TEST(ItemCrewTest, CloseDropsWhatNobodyBegan) {
  std::atomic<int> done{0};
  std::latch begun(1);
  std::latch go(1);
  ItemCrew crew(1, 1, "test");
  std::vector<ItemCrew::Task> tasks;
  tasks.push_back({0.0, [&](int) {
                     begun.count_down();
                     go.wait();
                     ++done;
                   }});
  for (int i = 0; i < 100; ++i) tasks.push_back({1.0, [&](int) { ++done; }});
  crew.add(std::move(tasks));
  begun.wait();
  std::thread closer([&] { crew.close(); });
  go.count_down();
  closer.join();
  EXPECT_LE(done.load(), 101);
  crew.add({{0.0, [&](int) { done = 1000; }}});
  EXPECT_LE(done.load(), 101);
}

TEST(ItemCostTest, ProgressivePicturesCostMore) {
  index::Part part{.length = 100'000, .width = 1000, .height = 1000};
  const double plain = decode_seconds(part);
  part.image_flags = image::kProgressive;
  EXPECT_GT(decode_seconds(part), 2 * plain);
}

TEST(ItemCostTest, CostlyItemsBeginBeforeCheapOnesOfEarlierSteps) {
  EXPECT_LT(start_key(3, 0.1, 0.5), start_key(1, 0.1, 0.01));
  EXPECT_GT(start_key(9, 0.1, 0.5), start_key(1, 0.1, 0.01));
  EXPECT_LT(start_key(1, 0.1, 0.02), start_key(1, 0.1, 0.01));
}

}  // namespace
}  // namespace chiliad::loader
