#include "chiliad/stepplan/offline_packs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "chiliad/base/error.h"
#include "chiliad/io/file.h"
#include "chiliad/stepplan/pack.h"
#include "chiliad/stepplan/plan.h"
#include "tests/support/document_index.h"

namespace chiliad::stepplan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const Digest kTokenizer{1, 2};

class OfflinePacksTest : public ::testing::Test {
 protected:
  OfflinePacksTest() : index_(test::document_index(1000, 700)) {
    options_.mode = "pack";
    options_.batch = 8;
    options_.sequence_length = 512;
    options_.window_blocks = 4;
    options_.micro_batch_tokens = 1024;
  }

  Plan plan(std::shared_ptr<const OfflinePacks> packs = {}) const {
    PlanFiles files;
    files.packs = std::move(packs);
    return Plan(index_, options_, 1, test::document_tokens(index_), kTokenizer, PlanPart::kTraining, files);
  }
  std::shared_ptr<const OfflinePacks> packs() const {
    const Plan plain = plan();
    OfflinePacking packing;
    packing.max_tokens = options_.micro_batch_tokens;
    packing.window_blocks = options_.window_blocks;
    packing.positions = [&](int64_t sample) { return int64_t{plain.longest_tokens(sample)}; };
    return std::make_shared<const OfflinePacks>(
        make_packs(plain.samples(), block_ends(index_),
                   packs_identity(index_.manifest().digest, kTokenizer, options_), packing));
  }
  PackOptions rows(int ranks) const {
    PackOptions options;
    options.num_ranks = ranks;
    options.max_tokens = options_.micro_batch_tokens;
    options.row_work = test::row_work();
    return options;
  }

  index::Index index_;
  spec::DataOptions options_;
};

TEST_F(OfflinePacksTest, EachSampleIsInOnePack) {
  const auto made = packs();
  std::vector<int64_t> all;
  for (int64_t p = 0; p < made->num_packs(); ++p)
    all.insert(all.end(), made->samples(p).begin(), made->samples(p).end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, plan().samples());
}

TEST_F(OfflinePacksTest, PacksAreWithinTheirBoundAndNearlyFull) {
  const auto made = packs();
  for (int64_t p = 0; p < made->num_packs(); ++p) EXPECT_LE(made->tokens(p), 1024);
  EXPECT_GE(made->fill(), 0.97);
}

TEST_F(OfflinePacksTest, PacksStayInsideTheirWindow) {
  const auto made = packs();
  const auto ends = block_ends(index_);
  int64_t pack = 0;
  int64_t window = 0;
  for (const int64_t size : made->group_sizes()) {
    for (const int64_t last = pack + size; pack < last; ++pack) {
      for (const int64_t sample : made->samples(pack)) {
        const auto block = std::upper_bound(ends.begin(), ends.end(), sample) - ends.begin();
        EXPECT_EQ(block / 4, window);
      }
    }
    ++window;
  }
}

TEST_F(OfflinePacksTest, AnEpochShowsEachSampleOnce) {
  const Plan packed = plan(packs());
  std::map<int64_t, int> seen;
  for (int64_t step = 0; step < packed.steps_per_epoch(); ++step) {
    for (const Item& item : packed.select(step, {}).items) ++seen[item.sample];
  }
  EXPECT_EQ(static_cast<int64_t>(seen.size()), packed.items_per_epoch());
  for (const auto& [sample, times] : seen) EXPECT_EQ(times, 1) << sample;
}

TEST_F(OfflinePacksTest, AStepTakesPacksWhole) {
  const auto made = packs();
  const Plan packed = plan(made);
  std::set<std::set<int64_t>> all;
  for (int64_t p = 0; p < made->num_packs(); ++p)
    all.insert({made->samples(p).begin(), made->samples(p).end()});
  const Step step = packed.select(3, {});
  std::map<int32_t, std::set<int64_t>> shown;
  for (const Item& item : step.items) shown[item.pack].insert(item.sample);
  EXPECT_LE(shown.size(), 8U);
  for (const auto& [pack, samples] : shown) EXPECT_TRUE(all.contains(samples)) << pack;
}

TEST_F(OfflinePacksTest, ItemsOfAPackShareARow) {
  const Plan packed = plan(packs());
  for (const int ranks : {1, 2, 5}) {
    std::map<int32_t, std::set<const MicroBatch*>> rows_of;
    const PackedStep step = pack(packed.select(2, {}), packed.buckets(), rows(ranks));
    for (const auto& slots : step.slots) {
      for (const MicroBatch& slot : slots) {
        EXPECT_LE(slot.num_tokens(), 1024);
        for (const Item& item : slot.items) rows_of[item.pack].insert(&slot);
      }
    }
    for (const auto& [number, where] : rows_of) EXPECT_EQ(where.size(), 1U) << number;
  }
}

TEST_F(OfflinePacksTest, EpochsDifferInTheirOrder) {
  const Plan packed = plan(packs());
  EXPECT_NE(packed.select(0, {}).items[0].sample,
            packed.select(packed.steps_per_epoch(), {}).items[0].sample);
}

TEST_F(OfflinePacksTest, ARunResumesWithItsPacksOnly) {
  const auto made = packs();
  const Cursor cursor = plan(made).cursor(4, {});
  EXPECT_NO_THROW(plan(made).check_resumable(cursor));
  EXPECT_THROW(plan().check_resumable(cursor), InvalidInput);
  options_.window_blocks = 5;
  EXPECT_THROW(plan(packs()).check_resumable(cursor), InvalidInput);
}

TEST_F(OfflinePacksTest, StalePacksAreRefusedWithADiff) {
  const auto made = packs();
  options_.sequence_length = 256;
  options_.packs = "old.packs";
  EXPECT_THAT([&] { (void)plan(made); },
              ThrowsMessage<InvalidInput>(AllOf(HasSubstr("data.packs: old.packs was made for other data"),
                                                HasSubstr("data.sequence_length: was 512, is 256"))));
}

TEST_F(OfflinePacksTest, PacksOfOtherDataAreRefused) {
  const auto made = packs();
  const auto other = test::document_index(1000, 700, 2);
  PlanFiles files;
  files.packs = made;
  EXPECT_THAT(
      [&] {
        (void)Plan(other, options_, 1, test::document_tokens(other), kTokenizer, PlanPart::kTraining, files);
      },
      ThrowsMessage<InvalidInput>(HasSubstr("data.index (what the data set holds): was ")));
}

TEST_F(OfflinePacksTest, ARowMustHoldThem) {
  const Plan packed = plan(packs());
  auto options = rows(2);
  options.max_tokens = 1000;
  EXPECT_THAT([&] { (void)pack(packed.select(0, {}), packed.buckets(), options); },
              ThrowsMessage<InvalidInput>(HasSubstr("positions of an offline pack of")));
}

TEST_F(OfflinePacksTest, ASampleLongerThanAPackIsRefused) {
  options_.micro_batch_tokens = 500;
  EXPECT_THAT([&] { (void)packs(); },
              ThrowsMessage<InvalidInput>(HasSubstr("expected at least the 512 positions of sample")));
}

OfflinePacks small() {
  OfflinePacks::Identity identity{{1, 2}, {3, 4}, {{"data.limit", "0"}, {"data.sequence_length", "64"}}};
  return OfflinePacks(std::move(identity), 64, {{{{0, 2}, 64}, {{1}, 7}}, {{{3}, 9}}});
}

std::vector<std::byte> golden() {
  return io::read_file(CHILIAD_TEST_DATA "/stepplan/packs_v1.packs", 1 << 20);
}

TEST(PacksFileTest, IsAsDocumented) {
  EXPECT_EQ(small().to_bytes(), golden());
}

TEST(PacksFileTest, ComesBack) {
  const auto read = OfflinePacks::from_bytes(golden(), "f");
  EXPECT_EQ(read.digest(), small().digest());
  EXPECT_EQ(read.identity().settings, small().identity().settings);
  EXPECT_EQ(read.identity().tokenizer, (Digest{3, 4}));
  EXPECT_EQ(read.group_sizes(), (std::vector<int64_t>{2, 1}));
  EXPECT_THAT(read.samples(0), ::testing::ElementsAre(0, 2));
  EXPECT_EQ(read.tokens(2), 9);
  EXPECT_EQ(read.max_tokens(), 64);
}

TEST(PacksFileTest, ACutFileIsRefusedWherever) {
  const auto bytes = golden();
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW((void)OfflinePacks::from_bytes(std::span(bytes).first(size), "f"), CorruptData) << size;
}

TEST(PacksFileTest, AFlippedBitIsRefusedWherever) {
  for (size_t bit = 0; bit < 8 * golden().size(); bit += 5) {
    auto bytes = golden();
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_THROW((void)OfflinePacks::from_bytes(bytes, "f"), CorruptData) << bit;
  }
}

TEST(PacksFileTest, AnotherKindOfFileIsNamed) {
  EXPECT_THAT([] { (void)OfflinePacks::from_bytes(std::vector<std::byte>(200), "f"); },
              ThrowsMessage<CorruptData>(HasSubstr("f: expected a file of `chiliad data pack`")));
}

}  // namespace
}  // namespace chiliad::stepplan
