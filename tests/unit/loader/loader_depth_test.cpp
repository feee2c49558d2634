#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "chiliad/base/error.h"
#include "chiliad/io/faults.h"
#include "chiliad/loader/loader.h"
#include "tests/support/synthetic_index.h"
#include "tests/unit/loader/made_data.h"

namespace chiliad::loader {
namespace {

using ::testing::HasSubstr;

/// Memory that is full of garbage whenever it is given out, and counted.
struct DirtyMemory {
  std::mutex mutex;  // guards the rest
  int64_t bytes = 0;
  int64_t most = 0;
  int64_t allocations = 0;

  SlabAllocator allocator() {
    return {[this](int64_t size) {
              auto* memory =
                  static_cast<std::byte*>(::operator new (static_cast<size_t>(size), std::align_val_t{64}));
              std::memset(memory, 0xA5, static_cast<size_t>(size));
              std::lock_guard lock(mutex);
              bytes += size;
              ++allocations;
              most = std::max(most, bytes);
              return memory;
            },
            [this](std::byte* memory, int64_t size) {
              ::operator delete (memory, std::align_val_t{64});
              std::lock_guard lock(mutex);
              bytes -= size;
            }};
  }
};

/// A gate that threads wait at until it opens.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    opened_.wait(lock, [&] { return open_; });
  }
  void open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    opened_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

class LoaderDepthTest : public ::testing::Test {
 protected:
  LoaderDepthTest() : data_(60) {
    options_.batch = 8;
    plan_.emplace(data_.index(), options_, 11, test::byte_tokens(data_.index()));
  }

  Loader make(int64_t first, int64_t end, LoaderOptions loader) {
    loader.pack.max_items = 4;
    loader.pack.work = test::transformer_work();
    return {data_.index(), *plan_, journal_, first, end, loader};
  }

  std::vector<Digest> contents(int64_t first, int64_t end, const LoaderOptions& loader) {
    Loader loading = make(first, end, loader);
    std::vector<Digest> found;
    for (int64_t step = first; step < end; ++step) found.push_back(test::content_of(loading.next()));
    return found;
  }

  test::MadeData data_;
  spec::DataOptions options_;
  stepplan::Journal journal_;
  std::optional<stepplan::Plan> plan_;
};

TEST_F(LoaderDepthTest, OutputDoesNotDependOnWhatMemoryHeld) {
  DirtyMemory memory;
  LoaderOptions dirty{.prefetch_steps = 2};
  dirty.allocator = memory.allocator();
  EXPECT_EQ(contents(0, 40, dirty), contents(0, 40, {}));
}

TEST_F(LoaderDepthTest, MemoryIsUsedAgain) {
  DirtyMemory memory;
  LoaderOptions options{.prefetch_steps = 2};
  options.allocator = memory.allocator();
  {
    Loader loading = make(0, 400, options);
    for (int step = 0; step < 400; ++step) (void)loading.next();
  }
  EXPECT_LT(memory.allocations, 40);
  EXPECT_EQ(memory.bytes, 0);
}

TEST_F(LoaderDepthTest, MemoryStaysWithinItsBudget) {
  DirtyMemory memory;
  LoaderOptions options{.prefetch_steps = 50, .prefetch_bytes = 300'000};
  options.allocator = memory.allocator();
  int64_t largest = 0;
  {
    Loader loading = make(0, 200, options);
    for (int step = 0; step < 200; ++step) {
      const RankStep loaded = loading.next();
      int64_t bytes = 0;
      for (const Batch& batch : loaded.slots)
        bytes += Slab::block_bytes(batch.pixels.num_bytes() + batch.tokens.num_bytes() + 128);
      largest = std::max(largest, bytes);
    }
  }
  EXPECT_GT(memory.most, 200'000);
  EXPECT_LE(memory.most, 300'000 + 2 * largest);  // what is ahead, and what the consumer holds
}

TEST_F(LoaderDepthTest, ABatchOutlivesItsLoader) {
  RankStep kept;
  {
    Loader loading = make(0, 3, {});
    kept = loading.next();
  }
  EXPECT_EQ(test::content_of(kept), contents(0, 1, {}).front());
}

TEST_F(LoaderDepthTest, TuningDoesNotChangeTheOutput) {
  LoaderOptions tuned{.num_threads = 1, .prefetch_steps = 1, .tune = true, .max_threads = 5};
  EXPECT_EQ(contents(0, 40, tuned), contents(0, 40, {.num_threads = 3}));
}

TEST_F(LoaderDepthTest, ConsumedDataIsTheSameForEveryLayout) {
  std::map<int64_t, uint64_t> one;
  for (const int ranks : {1, 2, 5}) {
    std::map<int64_t, uint64_t> sums;
    for (int rank = 0; rank < ranks; ++rank) {
      LoaderOptions options{.rank = rank};
      options.pack.num_ranks = ranks;
      Loader loading = make(0, 10, options);
      for (int step = 0; step < 10; ++step) sums[step] += loading.next().consumed;
    }
    if (ranks == 1) one = sums;
    EXPECT_EQ(sums, one) << ranks << " ranks";
  }
}

TEST_F(LoaderDepthTest, OtherDataIsConsumedOtherwise) {
  Loader good = make(0, 8, {});
  uint64_t sum = 0;
  for (int step = 0; step < 8; ++step) sum += good.next().consumed;
  data_.replace_picture(13, "no picture at all", true);
  Loader bad = make(0, 8, {});
  uint64_t other = 0;
  for (int step = 0; step < 8; ++step) other += bad.next().consumed;
  EXPECT_NE(sum, other);
}

TEST_F(LoaderDepthTest, CountsWhatTheWholeStepHasByGroup) {
  LoaderOptions options{.rank = 1};
  options.pack.num_ranks = 3;
  Loader loading = make(0, 2, options);
  int64_t sum = 0;
  for (const auto& group : loading.next().seen) sum += group.count;
  EXPECT_EQ(sum, std::ssize(plan_->select(0, {}).items));
}

TEST_F(LoaderDepthTest, AFindingIsRecalledInItsStepThoughTheFileIsGoodAgain) {
  const int64_t sample = plan_->select(3, {}).items[0].sample;
  journal_.add({4, sample, "key: storage: gone for a while"});
  Loader loading = make(3, 5, {});
  const RankStep step = loading.next();
  ASSERT_EQ(step.verdicts.size(), 1U);
  EXPECT_EQ(step.verdicts[0].sample, sample);
  EXPECT_EQ(step.verdicts[0].reason, "key: storage: gone for a while");
  EXPECT_EQ(step.num_items, std::ssize(plan_->select(3, {}).items));  // planned, as when it was found
}

#ifdef CHILIAD_FAULTS
TEST_F(LoaderDepthTest, UnavailableStorageIsAFindingIfAsked) {
  const io::ScopedFaultHook hook([](io::FileOp op, const std::string& path) -> io::FaultAction {
    return {op == io::FileOp::kRead && path.ends_with("13.png") ? EIO : 0, false};
  });
  Loader loading = make(0, 8, {.skip_unavailable = true});
  std::vector<Verdict> found;
  for (int step = 0; step < 8; ++step) {
    for (auto& verdict : loading.next().verdicts) found.push_back(verdict);
  }
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].sample, 13);
  EXPECT_EQ(stepplan::reason_kind(found[0].reason), "storage");
}

TEST_F(LoaderDepthTest, TheFirstStepNeedsItsOwnItemsOnly) {
  std::set<std::string> own;
  for (const auto& item : plan_->select(0, {}).items) own.insert(std::to_string(item.sample) + ".png");
  Gate gate;
  const io::ScopedFaultHook hook([&](io::FileOp op, const std::string& path) -> io::FaultAction {
    const std::string name = path.substr(path.rfind('/') + 1);
    if (op == io::FileOp::kRead && name.ends_with(".png") && !own.contains(name)) gate.pass();
    return {};
  });
  Loader loading = make(0, 8, {.num_threads = 1});
  EXPECT_EQ(loading.next().step, 0);
  gate.open();
  loading.close();
}

TEST_F(LoaderDepthTest, AnItemThatTakesLongIsNamed) {
  Gate gate;
  const io::ScopedFaultHook hook([&](io::FileOp op, const std::string& path) -> io::FaultAction {
    if (op == io::FileOp::kRead && path.ends_with("13.png")) gate.pass();
    return {};
  });
  std::string told;
  LoaderOptions options{.num_threads = 1};
  options.item_deadline = std::chrono::milliseconds(1);
  options.on_slow_item = [&](const std::string& text) {
    if (text.find("item 13 ") == std::string::npos) return;  // others may be slow for once
    told = text;
    gate.open();
  };
  Loader loading = make(0, 8, options);
  for (int step = 0; step < 8; ++step) (void)loading.next();
  loading.close();
  EXPECT_THAT(told, HasSubstr("13.png bytes 0 to "));
  EXPECT_THAT(told, HasSubstr("reading"));
  EXPECT_GE(loading.stats().slow_items, 1);
}
#endif

TEST_F(LoaderDepthTest, StopsAtEveryEvent) {
  constexpr int kSteps = 6;
  for (int stop_at = 0; stop_at < 200; ++stop_at) {
    std::atomic<int> events{0};
    std::mutex mutex;
    std::condition_variable changed;
    bool reached = false;
    bool closing = false;
    LoaderOptions options{.num_threads = 2, .prefetch_steps = 3, .tune = true, .max_threads = 3};
    options.on_event = [&](LoaderEvent) {
      if (events++ != stop_at) return;
      std::unique_lock lock(mutex);
      reached = true;
      changed.notify_all();
      changed.wait(lock, [&] { return closing; });
    };
    Loader loading = make(0, kSteps, options);
    std::thread consumer([&] {
      try {
        for (int step = 0; step < kSteps; ++step) (void)loading.next();
      } catch (const InternalError&) {  // closed meanwhile
      }
      std::lock_guard lock(mutex);
      reached = true;  // all is done before that event
      changed.notify_all();
    });
    bool past_all = false;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return reached; });
      past_all = events <= stop_at;
      closing = true;
      changed.notify_all();
    }
    loading.close();
    consumer.join();
    if (past_all) return;
  }
}

}  // namespace
}  // namespace chiliad::loader
