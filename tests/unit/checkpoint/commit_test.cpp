#include "chiliad/checkpoint/commit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/checkpoint/reader.h"
#include "chiliad/weights/safetensors.h"
#include "tests/support/checkpoint_kit.h"
#include "tests/support/temp_dir.h"

namespace chiliad::checkpoint {
namespace {

namespace fs = std::filesystem;
using test::TempDir;
using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<float> kValues{1, 2, 3, 4, 5, 6, 7, 8};
const Shape kShape{4, 2};

OwnedBox rows(int64_t first, int64_t count) {
  return {"model",
          "w",
          DType::kF32,
          kShape,
          Box::rows(kShape, first, count),
          reinterpret_cast<const std::byte*>(kValues.data() + first * 2)};
}

std::string commit_error(CheckpointWriter& writer) {
  try {
    writer.commit();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::vector<std::string> names(const fs::path& folder) {
  std::vector<std::string> found;
  for (const Listing& listing : list(folder)) found.push_back(listing.path.filename().string());
  return found;
}

void save(const fs::path& folder, int64_t step) {
  test::save_checkpoint(folder, step, test::make_tensors(1), 1, 1);
}

TEST(CommitTest, WithoutARankIsRefused) {
  const TempDir temp;
  CheckpointWriter writer(temp.path(), 1, 2, "");
  writer.write_rank(test::view_of(1, 0, "{}", {rows(0, 4)}));
  EXPECT_THAT(commit_error(writer), HasSubstr("commit of step 1 without rank 1"));
  EXPECT_FALSE(fs::exists(writer.path() / "COMMIT"));
}

TEST(CommitTest, GapIsRefused) {
  const TempDir temp;
  CheckpointWriter writer(temp.path(), 1, 1, "");
  writer.write_rank(test::view_of(1, 0, "{}", {rows(0, 3)}));
  EXPECT_THAT(commit_error(writer), HasSubstr("model/w: 2 elements of [4, 2] are covered by no box"));
}

TEST(CommitTest, OverlapIsRefused) {
  const TempDir temp;
  CheckpointWriter writer(temp.path(), 1, 2, "");
  writer.write_rank(test::view_of(1, 0, "{}", {rows(0, 3)}));
  writer.write_rank(test::view_of(1, 1, "{}", {rows(2, 1)}));
  EXPECT_THAT(commit_error(writer), HasSubstr("model/w: boxes [0:3, 0:2] and [2:3, 0:2] overlap"));
}

TEST(CommitTest, TwoStatesAreRefused) {
  const TempDir temp;
  CheckpointWriter writer(temp.path(), 1, 2, "");
  writer.write_rank(test::view_of(1, 0, "{\"a\":1}", {rows(0, 2)}));
  writer.write_rank(test::view_of(1, 1, "{\"a\":2}", {rows(2, 2)}));
  EXPECT_THAT(commit_error(writer), HasSubstr("rank 1 has another state than the ranks before it"));
}

TEST(CommitTest, TwoShapesOfATensorAreRefused) {
  const TempDir temp;
  CheckpointWriter writer(temp.path(), 1, 2, "");
  writer.write_rank(test::view_of(1, 0, "{}", {rows(0, 4)}));
  OwnedBox other = rows(0, 2);
  other.shape = {2, 2};
  writer.write_rank(test::view_of(1, 1, "{}", {other}));
  EXPECT_THAT(commit_error(writer),
              HasSubstr("rank 1 has model/w as F32 [2, 2], the ranks before it as F32 [4, 2]"));
}

TEST(CommitTest, RanksMayBeWrittenAtTheSameTime) {
  const TempDir temp;
  CheckpointWriter writer(temp.path(), 1, 4, "");
  std::vector<std::future<void>> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    ranks.push_back(std::async(std::launch::async, [&writer, rank] {
      writer.write_rank(test::view_of(1, rank, "{}", {rows(rank, 1)}));
    }));
  }
  for (auto& rank : ranks) rank.get();
  writer.commit();
  EXPECT_NO_THROW(Checkpoint::open(writer.path()).verify());
}

TEST(CommitTest, ARetryGetsANewGeneration) {
  const TempDir temp;
  const CheckpointWriter first(temp.path(), 3, 1, "");
  const CheckpointWriter second(temp.path(), 3, 1, "");
  EXPECT_EQ(first.path().filename(), "step-3.g0");
  EXPECT_EQ(second.path().filename(), "step-3.g1");
}

TEST(CommitTest, AbandonRemovesOnlyItsOwn) {
  const TempDir temp;
  save(temp.path(), 1);
  CheckpointWriter writer(temp.path(), 2, 1, "");
  writer.write_rank(test::view_of(2, 0, "{}", {rows(0, 4)}));
  writer.abandon();
  EXPECT_THAT(names(temp.path()), ElementsAre("step-1.g0"));
}

TEST(CommitTest, PartsAreSafetensorsAlignedForDirectReads) {
  const TempDir temp;
  CheckpointWriter writer(temp.path(), 1, 1, "");
  writer.write_rank(test::view_of(1, 0, "{}", {rows(0, 4)}));
  writer.commit();
  const auto file = weights::SafetensorsFile::open(writer.path() / "model" / "rank-00000.safetensors");
  EXPECT_EQ(file.data_start() % 4096, 0);
  EXPECT_EQ(file.metadata(), (weights::Metadata{{"format", "pt"}}));
  std::vector<float> values(8);
  file.read("w", std::as_writable_bytes(std::span(values)));
  EXPECT_EQ(values, kValues);
}

TEST(CommitTest, PartialBoxesCarryTheShardingKeys) {
  const TempDir temp;
  CheckpointWriter writer(temp.path(), 1, 2, "");
  writer.write_rank(test::view_of(1, 0, "{}", {rows(0, 3)}));
  writer.write_rank(test::view_of(1, 1, "{}", {rows(3, 1)}));
  writer.commit();
  const auto file = weights::SafetensorsFile::open(writer.path() / "model" / "rank-00001.safetensors");
  EXPECT_EQ(file.find("w")->shape, (Shape{1, 2}));
  EXPECT_EQ(file.metadata(), (weights::Metadata{{"DCP_SHARDING_INFO", "{\"w\":{\"saved_offsets\":[3,0]}}"},
                                                {"DCP_VERSION", "1.0"},
                                                {"format", "pt"}}));
}

TEST(PruneTest, KeepsTheNewest) {
  const TempDir temp;
  for (const int64_t step : {1, 2, 10, 9}) save(temp.path(), step);
  prune(temp.path(), 2);
  EXPECT_THAT(names(temp.path()), ElementsAre("step-10.g0", "step-9.g0"));
}

TEST(PruneTest, RemovesUncommittedRemainsOlderThanTheNewest) {
  const TempDir temp;
  const CheckpointWriter remains(temp.path(), 1, 1, "");
  save(temp.path(), 2);
  const CheckpointWriter in_flight(temp.path(), 3, 1, "");
  prune(temp.path(), 1);
  EXPECT_THAT(names(temp.path()), ElementsAre("step-3.g0", "step-2.g0"));
}

TEST(PruneTest, UncommittedOnesDoNotCount) {
  const TempDir temp;
  save(temp.path(), 1);
  const CheckpointWriter in_flight(temp.path(), 2, 1, "");
  prune(temp.path(), 1);
  EXPECT_THAT(names(temp.path()), ElementsAre("step-2.g0", "step-1.g0"));
}

TEST(PruneTest, ADamagedOneDoesNotDisplaceAGoodOne) {
  const TempDir temp;
  save(temp.path(), 1);
  save(temp.path(), 2);
  std::ofstream(temp.path() / "step-2.g0" / "manifest.json") << "{}";
  prune(temp.path(), 1);
  EXPECT_THAT(names(temp.path()), ElementsAre("step-2.g0", "step-1.g0"));
}

TEST(PruneTest, TouchesNothingElse) {
  const TempDir temp;
  save(temp.path(), 1);
  save(temp.path(), 2);
  fs::create_directory(temp.path() / "step-01.g0");
  std::ofstream(temp.path() / "notes.txt") << "mine";
  prune(temp.path(), 1);
  EXPECT_TRUE(fs::exists(temp.path() / "step-01.g0"));
  EXPECT_TRUE(fs::exists(temp.path() / "notes.txt"));
}

}  // namespace
}  // namespace chiliad::checkpoint
