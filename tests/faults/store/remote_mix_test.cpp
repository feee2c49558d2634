// Several sources of one mix behind servers of their own, through one block cache: the steps that files give.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chiliad/base/error.h"
#include "chiliad/loader/cached_parts.h"
#include "chiliad/loader/loader.h"
#include "chiliad/loader/run_inputs.h"
#include "tests/support/remote_set.h"
#include "tests/support/synthetic_index.h"

namespace chiliad::loader {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::ThrowsMessage;

/// The tars of the smaller set are named as those of the larger one, and begin with the same pictures.
class RemoteMixTest : public ::testing::Test {
 protected:
  RemoteMixTest() : many_(60), few_(25) {
    many_.make_index();
    few_.make_index();
    data_.batch = 10;
    data_.sources.resize(2);
    data_.sources[0].name = "many";
    data_.sources[1].name = "few";
  }

  /// The steps of 60 items of the mix, each by its pixels, tokens and verdicts.
  std::vector<Digest> steps_of(index::Index many, index::Index few, bool cached) const {
    const auto index = index::Index::concatenate({std::move(many), std::move(few)});
    const stepplan::Plan plan(index, data_, 11, test::byte_tokens(index));
    LoaderOptions options;
    options.pack.max_items = 5;
    options.pack.work = test::transformer_work();
    if (cached) {
      options.source = std::make_shared<CachedParts>(
          index, store::CacheClient::Options{many_.cache_folder(), std::chrono::seconds(60), {}});
    }
    Loader loading(index, plan, {}, 0, kSteps, options);
    std::vector<Digest> steps;
    for (int64_t step = 0; step < kSteps; ++step) {
      const RankStep loaded = loading.next();
      Hasher hasher;
      hasher.add(loaded.digest).add(static_cast<int64_t>(loaded.verdicts.size()));
      for (const Batch& batch : loaded.slots)
        hasher.add_bytes(batch.pixels.bytes()).add_bytes(batch.tokens.bytes());
      steps.push_back(hasher.digest());
    }
    return steps;
  }

  static constexpr int64_t kSteps = 16;
  static constexpr int64_t kAll = 64 << 20;
  test::RemoteSet many_;
  test::RemoteSet few_;
  spec::DataOptions data_;
};

TEST_F(RemoteMixTest, TwoServersGiveWhatFilesGive) {
  const auto expected = steps_of(many_.local(), few_.local(), false);
  const auto owner = many_.own(kAll);
  EXPECT_EQ(steps_of(many_.remote(), few_.remote(), true), expected);
  EXPECT_GT(few_.server().requests(), 0);
}

TEST_F(RemoteMixTest, AServerAndFilesGiveWhatFilesGive) {
  const auto expected = steps_of(many_.local(), few_.local(), false);
  const auto owner = many_.own(kAll);
  const int64_t before = few_.server().requests();
  EXPECT_EQ(steps_of(many_.remote(), few_.local(), true), expected);
  EXPECT_EQ(few_.server().requests(), before);
}

TEST_F(RemoteMixTest, FilesBeforeAServerGiveWhatFilesGive) {
  const auto expected = steps_of(many_.local(), few_.local(), false);
  const auto owner = many_.own(kAll);
  EXPECT_EQ(steps_of(many_.local(), few_.remote(), true), expected);
}

TEST_F(RemoteMixTest, BothAreFetchedAheadAndOnce) {
  const auto index = index::Index::concatenate({many_.remote(), few_.remote()});
  const stepplan::Plan plan(index, data_, 11, test::byte_tokens(index));
  const PartBlocks blocks(index);
  const auto owner = many_.own(kAll);
  owner->plan_ahead(0, [&](int64_t step) -> std::optional<std::vector<store::BlockSpec>> {
    if (step >= kSteps) return std::nullopt;
    return blocks.blocks_of(plan.select(step, {}));
  });
  static_cast<void>(steps_of(many_.remote(), few_.remote(), true));
  EXPECT_LE(owner->requests().bytes, many_.num_bytes() + few_.num_bytes());
  owner->close();
}

TEST_F(RemoteMixTest, BlocksOfOneNameInTwoStoresAreTwo) {
  const auto index = index::Index::concatenate({many_.remote(), few_.remote()});
  const PartBlocks blocks(index);
  stepplan::Step step;
  step.items.resize(2);
  step.items[1].sample = 60;  // the first of the second source
  const auto both = blocks.blocks_of(step);
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].store, many_.root());
  EXPECT_EQ(both[1].store, few_.root());
}

TEST_F(RemoteMixTest, RootsAreThoseOfTheStores) {
  EXPECT_THAT(remote_roots(index::Index::concatenate({many_.local(), few_.remote()})),
              ElementsAre(few_.root()));
  EXPECT_THAT(remote_roots(many_.local()), IsEmpty());
}

TEST_F(RemoteMixTest, EachStoreHasItsProfile) {
  spec::RunFile run;
  run.data = data_;
  const auto index = index::Index::concatenate({many_.remote(), few_.remote()});
  EXPECT_THAT(store_profiles(run, index), IsEmpty());
  run.data.sources[1].profile = "work";
  EXPECT_THAT(store_profiles(run, index), ElementsAre(Pair(few_.root(), "work")));
}

TEST_F(RemoteMixTest, AProfileOfFilesIsRefused) {
  spec::RunFile run;
  run.data = data_;
  run.data.sources[1].profile = "work";
  const auto index = index::Index::concatenate({many_.remote(), few_.local()});
  EXPECT_THAT([&] { (void)store_profiles(run, index); },
              ThrowsMessage<InvalidInput>(HasSubstr("few: profile: expected none for data in files")));
}

TEST_F(RemoteMixTest, TwoProfilesOfOneStoreAreRefused) {
  spec::RunFile run;
  run.data = data_;
  run.data.sources[0].profile = "home";
  run.data.sources[1].profile = "work";
  const auto index = index::Index::concatenate({many_.remote(), many_.remote()});
  EXPECT_THAT([&] { (void)store_profiles(run, index); },
              ThrowsMessage<InvalidInput>(HasSubstr("got 'home' and 'work'")));
}

}  // namespace
}  // namespace chiliad::loader
