#include "chiliad/index/plan_columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "chiliad/base/error.h"
#include "chiliad/base/rng.h"
#include "chiliad/index/content.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/index/example_shard.h"

namespace chiliad::index {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// Shards of pictures with any numbers of captions; the third has no pictures at all.
Index some_index() {
  Rng rng(3);
  std::vector<Shard> shards;
  for (uint32_t s = 0; s < 5; ++s) {
    Shard& shard = shards.emplace_back();
    shard.content = {1, s};
    for (uint32_t i = 0; i < 40 + 7 * s; ++i) {
      if (i % 9 == 0) shard.blocks.push_back({i, 0, 0});
      ++shard.blocks.back().num_samples;
      Sample sample;
      sample.key_hash = rng.next_u64();
      sample.first_part = i;
      sample.num_parts = 1;
      sample.first_caption = static_cast<uint32_t>(shard.captions.size());
      sample.num_captions = static_cast<uint16_t>(s == 1 ? 1 : rng.below(4));
      sample.flags = rng.below(10) == 0 ? kBadImage : kHasImage;
      Part part;
      part.media = s == 2 ? MediaType::kText : MediaType::kImage;
      part.width = static_cast<uint32_t>(1 + rng.below(s == 3 ? 100'000 : 2'000));
      part.height = static_cast<uint32_t>(1 + rng.below(2'000));
      for (int c = 0; c < sample.num_captions; ++c)
        shard.captions.push_back(
            {i, 0, 5, s == 1 || rng.below(2) == 0 ? language_code("en") : language_code("de")});
      shard.parts.push_back(part);
      shard.samples.push_back(sample);
      shard.keys.emplace_back("key");
    }
  }
  return Index::from_shards({}, std::move(shards));
}

uint32_t some_count(uint32_t shard, uint32_t caption) {
  return shard == 4 ? 70'000 + caption : 3 + caption % 50;
}

std::vector<int64_t> first_samples(const Index& index) {
  std::vector<int64_t> numbers;
  for (uint32_t s = 0; s <= index.num_shards(); ++s) numbers.push_back(index.first_sample(s));
  return numbers;
}

class PlanColumnsTest : public ::testing::Test {
 protected:
  void make() { make_plan_columns(index_, 0, index_.num_shards(), folder_.path(), some_count, {}, 100); }
  [[nodiscard]] PlanColumns open() const { return {folder_.path(), first_samples(index_), 0}; }
  [[nodiscard]] std::filesystem::path file(int number) const {
    return folder_.path() / ("00000" + std::to_string(number) + ".chplan");
  }

  test::TempDir folder_;
  Index index_ = some_index();
};

TEST_F(PlanColumnsTest, HoldWhatTheIndexHas) {
  make();
  const PlanColumns columns = open();
  const IndexColumns expected(index_, 0, index_.num_shards());
  ASSERT_EQ(columns.num_blocks(), expected.num_blocks());
  EXPECT_EQ(columns.num_samples(), index_.num_samples());
  BlockRows rows;
  BlockRows wanted;
  for (int64_t block = 0; block < columns.num_blocks(); ++block) {
    columns.read(block, rows);
    expected.read(block, wanted);
    ASSERT_EQ(rows.shard, wanted.shard);
    ASSERT_EQ(rows.first_sample, wanted.first_sample);
    ASSERT_TRUE(rows.counted || rows.captions.empty());
    ASSERT_EQ(rows.samples.size(), wanted.samples.size());
    for (size_t i = 0; i < rows.samples.size(); ++i) {
      const auto fields = [](const BlockRows::Sample& s) {
        return std::tuple(s.key_hash, s.width, s.height, s.first_caption, s.captions_at, s.num_captions);
      };
      ASSERT_EQ(fields(rows.samples[i]), fields(wanted.samples[i])) << "block " << block << " sample " << i;
      for (uint32_t c = 0; c < rows.samples[i].num_captions; ++c) {
        const auto& caption = rows.captions[rows.samples[i].captions_at + c];
        ASSERT_EQ(caption.language, wanted.captions[rows.samples[i].captions_at + c].language);
        ASSERT_EQ(caption.tokens, some_count(rows.shard, rows.samples[i].first_caption + c));
      }
    }
  }
}

TEST_F(PlanColumnsTest, AreWrittenByteForByte) {
  make();
  Hasher hasher;
  for (const int number : {0, 1}) hasher.add_bytes(io::read_file(file(number), 1 << 20));
  EXPECT_EQ(hasher.digest().hex(), "cc2bea6cae3c0c4b81e4c5cea5a8d125");
}

TEST_F(PlanColumnsTest, FilesThatAreThereAreKept) {
  make();
  const auto kept = io::stat_file(file(0))->mtime_ns;
  io::remove_file(folder_.path() / "complete");
  io::remove_file(file(1));
  EXPECT_FALSE(has_plan_columns(folder_.path()));
  make();
  EXPECT_TRUE(has_plan_columns(folder_.path()));
  EXPECT_EQ(io::stat_file(file(0))->mtime_ns, kept);
  EXPECT_EQ(open().num_samples(), index_.num_samples());
}

TEST_F(PlanColumnsTest, FlippedBitsAreNamed) {
  make();
  const auto bytes = io::read_file(file(0), 1 << 20);
  const auto read_all = [&] {
    const PlanColumns columns = open();
    BlockRows rows;
    for (int64_t block = 0; block < columns.num_blocks(); ++block) columns.read(block, rows);
  };
  ASSERT_NO_THROW(read_all());
  for (size_t at = 0; at < bytes.size(); at += 11) {
    auto damaged = bytes;
    damaged[at] ^= std::byte{static_cast<uint8_t>(1U << (at % 8))};
    io::File out = io::File::create(file(0));
    out.write(damaged);
    out.close();
    ASSERT_THROW(read_all(), CorruptData) << "byte " << at << " of " << bytes.size();
  }
}

TEST_F(PlanColumnsTest, CutFilesAreNamed) {
  make();
  const auto bytes = io::read_file(file(0), 1 << 20);
  for (const size_t size : {size_t{0}, size_t{20}, bytes.size() / 2, bytes.size() - 1}) {
    io::File out = io::File::create(file(0));
    out.write(std::span(bytes).first(size));
    out.close();
    EXPECT_THAT([&] { (void)open(); },
                ThrowsMessage<CorruptData>(HasSubstr("Delete its folder: it is made again")));
  }
}

TEST_F(PlanColumnsTest, ColumnsOfOtherShardsAreRefused) {
  make();
  auto numbers = first_samples(index_);
  numbers.pop_back();
  EXPECT_THAT([&] { PlanColumns(folder_.path(), numbers, 0); },
              ThrowsMessage<CorruptData>(HasSubstr("of the index")));
}

TEST(BlockTotalsTest, FlippedBitsAndCutsAreNamed) {
  const test::TempDir folder;
  const auto path = folder.path() / "t.chtot";
  write_block_totals(path, {{1, 2, 0, 7}, {-3, 5}});
  const auto read = read_block_totals(path);
  EXPECT_EQ(read.blocks, (std::vector<uint32_t>{1, 2, 0, 7}));
  EXPECT_EQ(read.totals, (std::vector<int64_t>{-3, 5}));
  const auto bytes = io::read_file(path, 1 << 20);
  const auto put = [&](std::span<const std::byte> content) {
    io::File out = io::File::create(path);
    out.write(content);
    out.close();
  };
  for (size_t at = 0; at < bytes.size(); ++at) {
    auto damaged = bytes;
    damaged[at] ^= std::byte{4};
    put(damaged);
    EXPECT_THROW((void)read_block_totals(path), CorruptData) << "byte " << at;
    put(std::span(bytes).first(at));
    EXPECT_THROW((void)read_block_totals(path), CorruptData) << at << " bytes";
  }
}

}  // namespace
}  // namespace chiliad::index
