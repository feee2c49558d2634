#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chiliad/io/faults.h"
#include "chiliad/io/file.h"
#include "chiliad/loader/cached_parts.h"
#include "chiliad/loader/loader.h"
#include "tests/support/program.h"
#include "tests/support/remote_set.h"
#include "tests/support/synthetic_index.h"

namespace chiliad::loader {
namespace {

using Kind = test::HttpFault::Kind;

Digest content_of(const RankStep& step) {
  Hasher hasher;
  hasher.add(step.step).add(step.digest).add(static_cast<int64_t>(step.verdicts.size()));
  for (const Batch& batch : step.slots)
    hasher.add_bytes(batch.pixels.bytes()).add_bytes(batch.tokens.bytes());
  return hasher.digest();
}

class RemoteLoaderTest : public ::testing::Test {
 protected:
  static constexpr int64_t kPictures = 60;
  static constexpr int64_t kAll = 64 << 20;

  RemoteLoaderTest() : set_(kPictures) { set_.make_index(); }

  static stepplan::Plan plan_of(const index::Index& index) {
    spec::DataOptions options;
    options.batch = 10;
    return {index, options, 11, test::byte_tokens(index)};
  }
  static LoaderOptions options() {
    LoaderOptions options;
    options.pack.max_items = 5;
    options.pack.work = test::transformer_work();
    return options;
  }
  std::vector<Digest> local_steps(int64_t epochs = 1) {
    const auto index = set_.local();
    return steps_of(index, options(), epochs);
  }
  static std::vector<Digest> steps_of(const index::Index& index, LoaderOptions options, int64_t epochs) {
    const auto plan = plan_of(index);
    const int64_t end = epochs * plan.steps_per_epoch();
    Loader loading(index, plan, {}, 0, end, std::move(options));
    std::vector<Digest> steps;
    for (int64_t step = 0; step < end; ++step) steps.push_back(content_of(loading.next()));
    return steps;
  }
  /// Steps of the remote index through the owner of the cache.
  std::vector<Digest> remote_steps(int64_t epochs = 1) {
    const auto index = set_.remote();
    LoaderOptions remote = options();
    remote.source = std::make_shared<CachedParts>(
        index, store::CacheClient::Options{set_.cache_folder(), std::chrono::seconds(60), {}});
    return steps_of(index, std::move(remote), epochs);
  }
  static store::RetryOptions quick() {
    store::RetryOptions retry;
    retry.first_pause = std::chrono::milliseconds(1);
    retry.longest_pause = std::chrono::milliseconds(20);
    retry.retry_burst = 1000.0;
    return retry;
  }
  /// Every n-th request fails so.
  void fail_every(int64_t n, test::HttpFault fault) {
    set_.server().set_faults([n, fault](const test::HttpRequest& request) {
      return request.number % n == 3 % n ? fault : test::HttpFault{};
    });
  }

  test::RemoteSet set_;
};

TEST_F(RemoteLoaderTest, TheIndexIsThatOfTheSameTarsHere) {
  EXPECT_EQ(set_.remote().manifest().digest, set_.local().manifest().digest);
  EXPECT_EQ(set_.remote().manifest().root, set_.root());
  EXPECT_FALSE(std::filesystem::exists(set_.index_folder() / "shards/incoming"));
}

TEST_F(RemoteLoaderTest, AnInterruptedIndexGoesOnWithoutReadingAgain) {
  const int64_t before = set_.server().bytes_sent();
  set_.make_index();
  EXPECT_EQ(set_.server().bytes_sent(), before);
}

TEST_F(RemoteLoaderTest, GivesWhatFilesGive) {
  const auto owner = set_.own(kAll, quick());
  EXPECT_EQ(remote_steps(), local_steps());
}

TEST_F(RemoteLoaderTest, FetchesItsShareOnceInFewRequests) {
  const auto owner = set_.own(kAll, quick());
  static_cast<void>(remote_steps(3));
  EXPECT_LE(owner->requests().bytes, set_.num_bytes() * 11 / 10);
  EXPECT_LE(owner->requests().requests, kPictures / 2);
  owner->cache().check_ledger();
}

TEST_F(RemoteLoaderTest, NothingIsLostWhereRequestsFail) {
  const auto expected = local_steps();
  for (const auto kind : {Kind::kStatus, Kind::kDrop, Kind::kShort, Kind::kShortRange, Kind::kFlip}) {
    SCOPED_TRACE(static_cast<int>(kind));
    std::filesystem::remove_all(set_.cache_folder());
    fail_every(4, {.kind = kind, .status = 503});
    const auto owner = set_.own(kAll, quick());
    EXPECT_EQ(remote_steps(), expected);
  }
}

TEST_F(RemoteLoaderTest, NothingIsLostWhereAnswersStall) {
  const auto expected = local_steps();
  fail_every(8, {.kind = Kind::kStall});
  const auto owner = set_.own(kAll, quick());
  EXPECT_EQ(remote_steps(), expected);
}

TEST_F(RemoteLoaderTest, NothingIsLostWhereTheCacheIsSmallerThanABlock) {
  const auto owner = set_.own(1 << 10, quick());
  EXPECT_EQ(remote_steps(), local_steps());
  EXPECT_EQ(owner->stats().blocks, 0);
}

TEST_F(RemoteLoaderTest, NothingIsLostWhereTheDiskIsFull) {
  const auto owner = set_.own(kAll, quick());
  const io::ScopedFaultHook hook([](io::FileOp op, const std::string& path) {
    const bool hit = op == io::FileOp::kWrite && path.ends_with(".block.tmp");
    return io::FaultAction{hit ? ENOSPC : 0, hit};
  });
  EXPECT_EQ(remote_steps(), local_steps());
}

TEST_F(RemoteLoaderTest, AStoreThatStaysDownIsUnavailableAndNoVerdict) {
  fail_every(1, {.kind = Kind::kDrop});
  auto retry = quick();
  retry.deadline = std::chrono::milliseconds(200);
  const auto owner = set_.own(kAll, retry);
  EXPECT_THROW(static_cast<void>(remote_steps()), Unavailable);
}

TEST_F(RemoteLoaderTest, DamageInTheStoreIsAVerdictOfTheItemAlone) {
  const auto index = set_.remote();
  const index::Shard& shard = index.shards().front();
  const auto part = index.image_part(0);
  const auto local = set_.local();
  std::string tar = io::read_text(local.part_path(local.shards().front(), *part), 1 << 30);
  tar[part->offset + part->length / 2] ^= 1;
  set_.server().put("set/" + shard.files.front().path, tar);
  const auto owner = set_.own(kAll, quick());
  LoaderOptions remote = options();
  remote.source = std::make_shared<CachedParts>(
      index, store::CacheClient::Options{set_.cache_folder(), std::chrono::seconds(60), {}});
  const auto plan = plan_of(index);
  Loader loading(index, plan, {}, 0, plan.steps_per_epoch(), remote);
  std::vector<Verdict> verdicts;
  for (int64_t step = 0; step < plan.steps_per_epoch(); ++step) {
    for (const Verdict& verdict : loading.next().verdicts) verdicts.push_back(verdict);
  }
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts.front().sample, 0);
  EXPECT_THAT(verdicts.front().reason, ::testing::HasSubstr("checksum"));
}

TEST_F(RemoteLoaderTest, AReaderSurvivesAnOwnerThatIsReplaced) {
  const auto expected = local_steps(2);
  auto owner = set_.own(kAll, quick());
  const auto index = set_.remote();
  LoaderOptions remote = options();
  remote.prefetch_steps = 1;
  remote.source = std::make_shared<CachedParts>(
      index, store::CacheClient::Options{set_.cache_folder(), std::chrono::seconds(60), {}});
  const auto plan = plan_of(index);
  const int64_t end = 2 * plan.steps_per_epoch();
  Loader loading(index, plan, {}, 0, end, remote);
  std::vector<Digest> steps;
  for (int64_t step = 0; step < end; ++step) {
    if (step == 3) {
      owner.reset();
      owner = set_.own(kAll, quick());
    }
    steps.push_back(content_of(loading.next()));
  }
  EXPECT_EQ(steps, expected);
}

TEST_F(RemoteLoaderTest, FetchingAheadReadsTheStepsBlocksOnce) {
  const auto index = set_.remote();
  const auto plan = plan_of(index);
  const PartBlocks blocks(index);
  const auto owner = set_.own(kAll, quick());
  owner->plan_ahead(0, [&](int64_t step) -> std::optional<std::vector<store::BlockSpec>> {
    if (step >= plan.steps_per_epoch()) return std::nullopt;
    return blocks.blocks_of(plan.select(step, {}));
  });
  EXPECT_EQ(remote_steps(), local_steps());
  EXPECT_LE(owner->requests().bytes, set_.num_bytes());
  owner->close();
}

}  // namespace
}  // namespace chiliad::loader
