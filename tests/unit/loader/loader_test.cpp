#include "chiliad/loader/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

#include "chiliad/base/error.h"
#include "chiliad/image/resize.h"
#include "chiliad/io/faults.h"
#include "chiliad/io/file.h"
#include "chiliad/text/byte_tokenizer.h"
#include "tests/support/synthetic_index.h"
#include "tests/unit/loader/made_data.h"

namespace chiliad::loader {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class LoaderTest : public ::testing::Test {
 protected:
  LoaderTest() : data_(60) { options_.batch = 8; }

  void make_plan() { plan_.emplace(data_.index(), options_, 11, test::byte_tokens(data_.index())); }

  Loader make(int64_t first, int64_t end, LoaderOptions loader = {}) {
    if (!plan_.has_value()) make_plan();
    loader.pack.max_items = 4;
    loader.pack.work = test::transformer_work();
    return {data_.index(), *plan_, journal_, first, end, loader};
  }

  std::vector<Digest> contents(int64_t first, int64_t end, const LoaderOptions& loader = {}) {
    Loader loading = make(first, end, loader);
    std::vector<Digest> found;
    for (int64_t step = first; step < end; ++step) found.push_back(test::content_of(loading.next()));
    return found;
  }

  /// The batch and place of `sample` in the first epoch, on one rank.
  struct Found {
    RankStep step;
    size_t slot = 0;
    size_t item = 0;
    const Batch& batch() const { return step.slots[slot]; }
    std::span<const uint8_t> pixels() const {
      const auto all = batch().pixels.as<uint8_t>();
      const size_t size = all.size() / batch().items.size();
      return all.subspan(item * size, size);
    }
  };
  Found find(int64_t sample) {
    make_plan();
    Loader loading = make(0, plan_->steps_per_epoch());
    for (int64_t step = 0; step < plan_->steps_per_epoch(); ++step) {
      Found found{loading.next()};
      for (found.slot = 0; found.slot < found.step.slots.size(); ++found.slot) {
        const auto& items = found.batch().items;
        for (found.item = 0; found.item < items.size(); ++found.item) {
          if (items[found.item].sample == sample) return found;
        }
      }
    }
    throw std::runtime_error("sample is not in the epoch");
  }

  test::MadeData data_;
  spec::DataOptions options_;
  stepplan::Journal journal_;
  std::optional<stepplan::Plan> plan_;
};

TEST_F(LoaderTest, PixelsAreThePictureCoveringItsBucket) {
  const Found found = find(13);
  const HostArray expected = image::cover(test::MadeData::picture(13), found.batch().bucket.width,
                                          found.batch().bucket.height, image::Filter::kBicubic);
  ASSERT_EQ(found.pixels().size(), expected.bytes().size());
  EXPECT_EQ(std::memcmp(found.pixels().data(), expected.data(), expected.bytes().size()), 0);
}

TEST_F(LoaderTest, FlippedItemsAreMirrored) {
  options_.flip = true;
  int flips = 0;
  for (int64_t sample = 0; sample < 12; ++sample) {
    const Found found = find(sample);
    if (!found.batch().items[found.item].flip) continue;
    ++flips;
    const HostArray expected = image::flip_horizontal(
        image::cover(test::MadeData::picture(static_cast<int>(sample)), found.batch().bucket.width,
                     found.batch().bucket.height, image::Filter::kBicubic));
    ASSERT_EQ(std::memcmp(found.pixels().data(), expected.data(), expected.bytes().size()), 0);
  }
  EXPECT_GT(flips, 0);
}

TEST_F(LoaderTest, TokensAreTheCaptionPadded) {
  const Found found = find(13);
  const auto ids = text::ByteTokenizer(128).encode(test::MadeData::caption(13));
  const auto all = found.batch().tokens.as<int32_t>();
  const size_t length = all.size() / found.batch().items.size();
  const auto row = all.subspan(found.item * length, length);
  ASSERT_EQ(found.batch().token_counts[found.item], static_cast<int32_t>(ids.size()));
  for (size_t i = 0; i < length; ++i) EXPECT_EQ(row[i], i < ids.size() ? ids[i] : 0);
}

TEST_F(LoaderTest, OutputIsTheSameForAnyNumberOfThreads) {
  options_.flip = true;
  options_.crop = "random";
  const auto expected = contents(0, 20, {.num_threads = 1, .prefetch_steps = 1});
  EXPECT_EQ(contents(0, 20, {.num_threads = 2}), expected);
  EXPECT_EQ(contents(0, 20, {.num_threads = 7, .prefetch_steps = 9}), expected);
}

TEST_F(LoaderTest, ResumesAtEveryStep) {
  const auto expected = contents(0, 20);
  for (int64_t first = 1; first < 20; ++first) {
    const auto resumed = contents(first, 20);
    ASSERT_TRUE(std::equal(resumed.begin(), resumed.end(), expected.begin() + first))
        << "from step " << first;
  }
}

TEST_F(LoaderTest, CacheDoesNotChangeTheOutput) {
  options_.flip = true;
  const auto expected = contents(0, 30);
  EXPECT_EQ(contents(0, 30, {.cache_bytes = 1 << 20}), expected);
  EXPECT_EQ(contents(0, 30, {.cache_bytes = 20'000}), expected);
}

TEST_F(LoaderTest, PixelsHaveTheShapesOfTheStepsStage) {
  spec::ShapeStage stage;
  stage.from = 2;  // kept pictures of the first steps have other sizes
  stage.resolution = 48;
  stage.bucket_max = 96;
  options_.stages = {stage};
  make_plan();
  Loader loading = make(0, 20, {.cache_bytes = 1 << 24});
  for (int64_t step = 0; step < 20; ++step) {
    const RankStep loaded = loading.next();
    for (const Batch& batch : loaded.slots) {
      const double about = step < 2 ? 32.0 * 32.0 : 48.0 * 48.0;
      ASSERT_NEAR(batch.bucket.width * batch.bucket.height / about, 1.0, 0.35);
      const auto all = batch.pixels.as<uint8_t>();
      const size_t size = all.size() / batch.items.size();
      for (size_t i = 0; i < batch.items.size(); ++i) {
        const HostArray expected =
            image::cover(test::MadeData::picture(static_cast<int>(batch.items[i].sample)), batch.bucket.width,
                         batch.bucket.height, image::Filter::kBicubic);
        ASSERT_EQ(expected.bytes().size(), size);
        ASSERT_EQ(std::memcmp(all.data() + i * size, expected.data(), size), 0) << "step " << step;
      }
    }
  }
}

TEST_F(LoaderTest, RanksTogetherHoldTheEpochOnce) {
  for (const int ranks : {1, 2, 3, 5, 30}) {
    std::map<int64_t, int> seen;
    for (int rank = 0; rank < ranks; ++rank) {
      LoaderOptions options{.rank = rank};
      options.pack.num_ranks = ranks;
      make_plan();
      Loader loading = make(0, plan_->steps_per_epoch(), options);
      for (int64_t step = 0; step < plan_->steps_per_epoch(); ++step) {
        const RankStep loaded = loading.next();
        ASSERT_EQ(loaded.digest, plan_->select(step, {}).digest());
        for (const Batch& batch : loaded.slots) {
          for (const auto& item : batch.items) ++seen[item.sample];
        }
      }
    }
    ASSERT_EQ(seen.size(), 60U) << ranks << " ranks";
    for (const auto& [sample, times] : seen)
      ASSERT_EQ(times, 1) << "sample " << sample << ", " << ranks << " ranks";
  }
}

TEST_F(LoaderTest, ReadsEveryPartOnce) {
  Loader loading = make(0, 10);
  for (int i = 0; i < 10; ++i) (void)loading.next();
  EXPECT_GT(loading.stats().bytes_read, 0);
  EXPECT_EQ(loading.stats().bytes_read, loading.stats().bytes_planned);
}

TEST_F(LoaderTest, CacheSavesTheReadsOfTheSecondEpoch) {
  make_plan();
  Loader loading = make(0, 2 * plan_->steps_per_epoch(), {.prefetch_steps = 1, .cache_bytes = 1 << 20});
  for (int64_t i = 0; i < 2 * plan_->steps_per_epoch(); ++i) (void)loading.next();
  EXPECT_EQ(loading.stats().cache_hits, 60);
  EXPECT_LT(loading.stats().bytes_read, loading.stats().bytes_planned * 6 / 10);
}

TEST_F(LoaderTest, WrongBytesAreAVerdictAndKeepTheirPlace) {
  const Found good = find(13);
  data_.replace_picture(13, std::string(good.pixels().size() + 5000, 'x'), false);
  const Found found = find(13);
  ASSERT_EQ(found.step.verdicts.size(), 1U);
  EXPECT_EQ(found.step.verdicts[0].sample, 13);
  EXPECT_THAT(found.step.verdicts[0].reason, HasSubstr("13.png: checksum: expected"));
  EXPECT_THAT(found.step.verdicts[0].reason, HasSubstr("changed since it was indexed"));
  EXPECT_EQ(found.slot, good.slot);
  EXPECT_EQ(found.item, good.item);
  EXPECT_EQ(found.batch().items[found.item].weight, 0.0F);
  EXPECT_EQ(found.batch().token_counts[found.item], 1);
  for (const uint8_t value : found.pixels()) ASSERT_EQ(value, 0);
}

TEST_F(LoaderTest, ABadItemLeavesTheOthersAlone) {
  const Found good = find(13);
  data_.replace_picture(13, "x", false);
  const Found found = find(13);
  EXPECT_EQ(found.step.digest, good.step.digest);
  EXPECT_EQ(found.step.num_items, good.step.num_items);
  for (size_t slot = 0; slot < good.step.slots.size(); ++slot) {
    if (slot == good.slot) continue;
    const auto expected = good.step.slots[slot].pixels.bytes();
    const auto actual = found.step.slots[slot].pixels.bytes();
    EXPECT_TRUE(std::equal(actual.begin(), actual.end(), expected.begin(), expected.end()));
  }
}

TEST_F(LoaderTest, AShortFileIsAVerdict) {
  data_.replace_picture(13, "x", false);
  EXPECT_THAT(find(13).step.verdicts.at(0).reason, HasSubstr("13.png: ends at byte 1, expected"));
}

TEST_F(LoaderTest, VerifiedBytesThatDoNotDecodeAreAVerdict) {
  data_.replace_picture(13, "no picture at all", true);
  const Found found = find(13);
  ASSERT_EQ(found.step.verdicts.size(), 1U);
  EXPECT_EQ(found.step.verdicts[0].reason.substr(0, 4), "13: ");
}

TEST_F(LoaderTest, AMissingFileIsUnavailable) {
  std::filesystem::remove(data_.caption_path(13));
  EXPECT_THAT([&] { (void)find(13); },
              ThrowsMessage<Unavailable>(HasSubstr("data changed since it was indexed")));
}

TEST_F(LoaderTest, AStaleTokenColumnIsNamed) {
  plan_.emplace(data_.index(), options_, 11, [](uint32_t, uint32_t) { return 3U; });
  Loader loading = make(0, 1);
  EXPECT_THAT([&] { (void)loading.next(); }, ThrowsMessage<CorruptData>(HasSubstr("token column")));
}

TEST_F(LoaderTest, JournalledItemsAreNotRead) {
  std::filesystem::remove(data_.picture_path(13));
  journal_.add({0, 13, "gone"});
  const Found found = find(13);
  EXPECT_EQ(found.batch().items[found.item].weight, 0.0F);
  EXPECT_TRUE(found.step.verdicts.empty());
}

TEST_F(LoaderTest, AmendmentsReachStepsThatAreLoadedAlready) {
  make_plan();
  const auto items = plan_->select(2, {}).items;
  Loader loading = make(0, 5);
  (void)loading.next();
  (void)loading.next();
  loading.amend({{2, items[0].sample, "bad"}, {3, items[1].sample, "bad later"}});
  const RankStep step = loading.next();
  stepplan::Journal journal;
  journal.add({2, items[0].sample, ""});
  EXPECT_EQ(step.digest, plan_->select(2, journal).digest());
  EXPECT_EQ(step.num_items, static_cast<int64_t>(items.size()) - 1);
  for (const Batch& batch : step.slots) {
    for (size_t i = 0; i < batch.items.size(); ++i) {
      EXPECT_EQ(batch.items[i].weight, batch.items[i].sample == items[0].sample ? 0.0F : 1.0F);
      if (batch.items[i].weight == 0.0F) {
        EXPECT_EQ(batch.token_counts[i], 1);
      }
    }
  }
}

TEST_F(LoaderTest, AmendedOutputEqualsThatOfALaterStart) {
  make_plan();
  const stepplan::Amendment amendment{3, plan_->select(3, {}).items[0].sample, "bad"};
  Loader loading = make(0, 8);
  (void)loading.next();
  loading.amend({amendment});
  std::vector<Digest> amended;
  for (int i = 1; i < 8; ++i) amended.push_back(test::content_of(loading.next()));
  journal_.add(amendment);
  EXPECT_EQ(contents(1, 8), amended);
}

TEST_F(LoaderTest, LoadsNoMoreThanItsBytesAhead) {
  Loader loading = make(0, 50, {.prefetch_steps = 20, .prefetch_bytes = 1});
  (void)loading.next();
  loading.close();
  EXPECT_LE(loading.stats().items, 16);
}

TEST_F(LoaderTest, ClosesAnywhere) {
  for (int steps = 0; steps < 6; ++steps) {
    Loader loading = make(0, 100, {.num_threads = 3, .prefetch_steps = 30});
    for (int i = 0; i < steps; ++i) (void)loading.next();
    loading.close();
    EXPECT_THROW((void)loading.next(), InternalError);
  }
}

TEST_F(LoaderTest, RefusesToGoPastTheEnd) {
  Loader loading = make(4, 5);
  (void)loading.next();
  EXPECT_THROW((void)loading.next(), InternalError);
}

#ifdef CHILIAD_FAULTS
TEST_F(LoaderTest, AShortStorageErrorIsRetried) {
  std::atomic<int> failures{0};
  const auto expected = contents(0, 8);
  const io::ScopedFaultHook hook([&](io::FileOp op, const std::string& path) -> io::FaultAction {
    if (op != io::FileOp::kRead || !path.ends_with("13.png") || failures++ > 0) return {};
    return {EIO, false};
  });
  EXPECT_EQ(contents(0, 8), expected);
  EXPECT_GT(failures.load(), 1);
}

TEST_F(LoaderTest, ALastingStorageErrorIsThrownNotAVerdict) {
  const io::ScopedFaultHook hook([](io::FileOp op, const std::string& path) -> io::FaultAction {
    return {op == io::FileOp::kRead && path.ends_with("13.png") ? EIO : 0, false};
  });
  EXPECT_THAT([&] { (void)contents(0, 8); }, ThrowsMessage<Unavailable>(HasSubstr("13.png")));
}

TEST_F(LoaderTest, SilentStorageIsUnavailableAfterTheDeadline) {
  std::mutex mutex;
  std::condition_variable released;
  bool open = false;
  const io::ScopedFaultHook hook([&](io::FileOp, const std::string&) -> io::FaultAction {
    std::unique_lock lock(mutex);
    released.wait(lock, [&] { return open; });
    return {};
  });
  Loader loading = make(0, 8, {.read_deadline = std::chrono::milliseconds(20)});
  EXPECT_THAT([&] { (void)loading.next(); }, ThrowsMessage<Unavailable>(HasSubstr("did not answer within")));
  {
    std::lock_guard lock(mutex);
    open = true;
  }
  released.notify_all();
  loading.close();
}

TEST_F(LoaderTest, WaitsTogetherAreLateAfterTheDeadline) {
  std::mutex mutex;
  std::condition_variable released;
  bool open = false;
  const io::ScopedFaultHook hook([&](io::FileOp, const std::string&) -> io::FaultAction {
    std::unique_lock lock(mutex);
    released.wait(lock, [&] { return open; });
    return {};
  });
  Loader loading = make(0, 8, {.read_deadline = std::chrono::milliseconds(20)});
  const auto wait_on = [&] {
    while (!loading.wait(std::chrono::milliseconds(1))) continue;
  };
  EXPECT_THAT(wait_on, ThrowsMessage<Unavailable>(HasSubstr("did not answer within")));
  {
    std::lock_guard lock(mutex);
    open = true;
  }
  released.notify_all();
  loading.close();
}

TEST_F(LoaderTest, AfterAWaitNextNeedNotWait) {
  Loader loading = make(0, 8, {});
  while (!loading.wait(std::chrono::milliseconds(1))) continue;
  const double before = loading.stats().wait_seconds;
  EXPECT_EQ(loading.next().step, 0);
  EXPECT_LT(loading.stats().wait_seconds - before, 0.5);
}

TEST_F(LoaderTest, WrongBytesAreReadOnceMore) {
  std::atomic<int> opens{0};
  data_.replace_picture(13, std::string(20'000, 'x'), false);
  const io::ScopedFaultHook hook([&](io::FileOp op, const std::string& path) -> io::FaultAction {
    if (op == io::FileOp::kOpen && path.ends_with("13.png")) ++opens;
    return {};
  });
  (void)find(13);
  EXPECT_EQ(opens.load(), 2);
}
#endif

}  // namespace
}  // namespace chiliad::loader
