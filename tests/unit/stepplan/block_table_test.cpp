#include "chiliad/stepplan/block_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "chiliad/base/rng.h"
#include "chiliad/stepplan/plan.h"
#include "tests/support/temp_dir.h"

namespace chiliad::stepplan {
namespace {

/// Documents that lie nowhere: enough of them for threads and stored tables. Every seventh is too short.
class MadeColumns : public index::SampleColumns {
 public:
  static constexpr int64_t kBlock = 1000;

  [[nodiscard]] int64_t num_samples() const override { return 1'300'000; }
  [[nodiscard]] int64_t num_blocks() const override { return num_samples() / kBlock; }
  void read(int64_t block, index::BlockRows& rows) const override {
    ++num_reads_;
    rows.first_sample = block * kBlock;
    rows.counted = true;
    rows.samples.resize(kBlock);
    rows.captions.resize(kBlock);
    for (uint32_t i = 0; i < kBlock; ++i) {
      rows.samples[i] = {hash_of(rows.first_sample + i), 0, 0, i, i, 1};
      rows.captions[i] = {0, is_usable(rows.first_sample + i) ? 9U : 1U};
    }
  }
  static uint64_t hash_of(int64_t sample) {
    return mix64(static_cast<uint64_t>(sample / 2));
  }  // pairs of twins
  static bool is_usable(int64_t sample) { return sample % 7 != 0; }
  [[nodiscard]] int64_t num_reads() const { return num_reads_; }

 private:
  mutable std::atomic<int64_t> num_reads_{0};
};

class BlockTableTest : public ::testing::Test {
 protected:
  static Usable usable() {
    spec::DataOptions options;
    options.languages.clear();
    return {options, std::nullopt, true, nullptr};
  }
  static std::vector<std::pair<uint64_t, int64_t>> ranked(uint64_t key) {
    std::vector<std::pair<uint64_t, int64_t>> all;
    for (int64_t sample = 0; sample < MadeColumns().num_samples(); ++sample)
      if (MadeColumns::is_usable(sample)) all.emplace_back(mix64(MadeColumns::hash_of(sample) ^ key), sample);
    std::sort(all.begin(), all.end());
    return all;
  }

  MadeColumns columns_;
};

TEST_F(BlockTableTest, ThresholdsHoldTheSmallestKeyedHashes) {
  BlockTableOptions options;
  options.held_out = 12'345;
  options.limit = 700'001;
  const BlockTable table = make_block_table(columns_, usable(), options);
  const auto held_out = ranked(0x68656C64ULL);
  std::vector<bool> is_held_out(static_cast<size_t>(columns_.num_samples()));
  for (int64_t i = 0; i < options.held_out; ++i)
    is_held_out[static_cast<size_t>(held_out[static_cast<size_t>(i)].second)] = true;
  std::vector<uint32_t> items(static_cast<size_t>(columns_.num_blocks()));
  int64_t taken = 0;
  for (const auto& [hash, sample] : ranked(0x6C696D6974ULL)) {
    if (is_held_out[static_cast<size_t>(sample)]) continue;
    const bool expected = taken++ < options.limit;
    ASSERT_EQ(table.holds(MadeColumns::hash_of(sample), sample), expected) << "sample " << sample;
    if (expected) ++items[static_cast<size_t>(sample / MadeColumns::kBlock)];
  }
  EXPECT_EQ(table.items, items);
  EXPECT_EQ(table.num_items, options.limit);
}

TEST_F(BlockTableTest, CoverageAddsUp) {
  BlockTableOptions options;
  options.held_out = 100;
  options.limit = 1'000'000;
  const Coverage coverage = make_block_table(columns_, usable(), options).coverage;
  EXPECT_EQ(coverage.too_short, (columns_.num_samples() + 6) / 7);
  EXPECT_EQ(coverage.in_order, 1'000'000);
  EXPECT_EQ(coverage.in_order + coverage.over_limit + coverage.held_out + coverage.too_short,
            coverage.in_index);
}

TEST_F(BlockTableTest, TablesOfLargeDataSetsAreMadeOnce) {
  const test::TempDir folder;
  BlockTableOptions options;
  options.folder = folder.path();
  options.limit = 5'000;
  const BlockTable made = make_block_table(columns_, usable(), options);
  const int64_t reads = columns_.num_reads();
  const BlockTable read = make_block_table(columns_, usable(), options);
  EXPECT_EQ(columns_.num_reads(), reads);
  EXPECT_EQ(read.items, made.items);
  EXPECT_EQ(read.coverage, made.coverage);
  EXPECT_EQ(read.limit.hash, made.limit.hash);
  EXPECT_EQ(read.bucket_items, made.bucket_items);
  options.limit = 6'000;
  EXPECT_EQ(make_block_table(columns_, usable(), options).num_items, 6'000);
}

}  // namespace
}  // namespace chiliad::stepplan
