#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/checkpoint/commit.h"
#include "chiliad/checkpoint/reader.h"
#include "chiliad/io/file.h"
#include "tests/support/checkpoint_kit.h"
#include "tests/support/temp_dir.h"

namespace chiliad::checkpoint {
namespace {

using test::TempDir;

void ignore(const std::string&, const std::string&) {}

Box random_box(const Shape& shape, Rng& rng) {
  std::vector<int64_t> offset;
  std::vector<int64_t> size;
  for (const int64_t extent : shape.sizes()) {
    offset.push_back(static_cast<int64_t>(rng.below(static_cast<uint64_t>(extent) + 1)));
    size.push_back(static_cast<int64_t>(rng.below(static_cast<uint64_t>(extent - offset.back()) + 1)));
  }
  return {Shape(std::move(offset)), Shape(std::move(size))};
}

TEST(RoundTripTest, GivesBackEveryTensor) {
  const TempDir temp;
  const auto tensors = test::make_tensors(1);
  const auto path = test::save_checkpoint(temp.path(), 5, tensors, 3, 1);
  const Checkpoint checkpoint = Checkpoint::open(path);
  EXPECT_EQ(test::difference(checkpoint, tensors), "");
  EXPECT_NO_THROW(checkpoint.verify());
}

TEST(RoundTripTest, KeepsStateConfigAndNumbers) {
  const TempDir temp;
  const Checkpoint checkpoint =
      Checkpoint::open(test::save_checkpoint(temp.path(), 5, test::make_tensors(1), 3, 1));
  EXPECT_EQ(checkpoint.step(), 5);
  EXPECT_EQ(checkpoint.generation(), 0);
  EXPECT_EQ(checkpoint.num_ranks(), 3);
  EXPECT_EQ(checkpoint.state(), test::state_of(5));
  EXPECT_EQ(checkpoint.config(), "run: {name: test}\n");
  EXPECT_EQ(checkpoint.path().filename(), "step-5.g0");
}

TEST(RoundTripTest, AnyRowsLoadIntoAnyBox) {
  for (uint64_t seed = 0; seed < 15; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const TempDir temp;
    Rng rng({seed, 1});
    const auto tensors = test::make_tensors(seed);
    const int num_ranks = static_cast<int>(1 + rng.below(6));
    const Checkpoint checkpoint =
        Checkpoint::open(test::save_checkpoint(temp.path(), 1, tensors, num_ranks, seed));
    for (const auto& tensor : tensors) {
      for (int round = 0; round < 8; ++round) {
        const Box box = random_box(tensor.shape, rng);
        std::vector<std::byte> got(static_cast<size_t>(box.count() * dtype_bytes(tensor.dtype)));
        checkpoint.read(*checkpoint.find(tensor.section, tensor.name), box, got);
        ASSERT_EQ(got, test::cut(tensor, box)) << tensor.name << " " << box.to_string();
      }
    }
  }
}

TEST(RoundTripTest, DigestOfATensorIsThatOfAnyLayout) {
  const TempDir temp;
  const auto tensors = test::make_tensors(3);
  const Checkpoint one = Checkpoint::open(test::save_checkpoint(temp.path(), 1, tensors, 1, 1));
  const Checkpoint five = Checkpoint::open(test::save_checkpoint(temp.path(), 2, tensors, 5, 2));
  for (const auto& tensor : one.tensors()) {
    EXPECT_EQ(tensor.digest, five.find(tensor.section, tensor.name)->digest) << tensor.name;
  }
}

TEST(RoundTripTest, ColumnBoxesLoadAsAWhole) {
  const TempDir temp;
  const test::WholeTensor whole = test::make_tensors(4)[0];  // [7, 5]
  CheckpointWriter writer(temp.path(), 1, 2, "");
  for (int rank = 0; rank < 2; ++rank) {
    const Box box = rank == 0 ? Box{{0, 0}, {7, 2}} : Box{{0, 2}, {7, 3}};
    const std::vector<std::byte> data = test::cut(whole, box);
    writer.write_rank(
        test::view_of(1, rank, "{}", {{"model", whole.name, whole.dtype, whole.shape, box, data.data()}}));
  }
  writer.commit();
  const Checkpoint checkpoint = Checkpoint::open(writer.path());
  EXPECT_EQ(test::difference(checkpoint, {whole}), "");
  EXPECT_NO_THROW(checkpoint.verify());
}

TEST(RoundTripTest, SpansSeveralBlocks) {
  const TempDir temp;
  test::WholeTensor big{"model", "big", DType::kF32, {5'000, 1'000}, std::vector<std::byte>(20'000'000)};
  for (size_t i = 0; i < big.data.size(); i += 4) big.data[i] = static_cast<std::byte>(i / 4 % 251);
  const Checkpoint checkpoint = Checkpoint::open(test::save_checkpoint(temp.path(), 1, {big}, 1, 1));
  EXPECT_EQ(test::difference(checkpoint, {big}), "");
  EXPECT_NO_THROW(checkpoint.verify());
  const Box middle = Box::rows(big.shape, 2'000, 1'500);
  std::vector<std::byte> got(6'000'000);
  checkpoint.read(checkpoint.tensors()[0], middle, got);
  EXPECT_TRUE(std::equal(got.begin(), got.end(), big.data.begin() + 8'000'000));
}

TEST(RoundTripTest, FromTheRingToTheDisk) {
  const TempDir temp;
  const auto tensors = test::make_tensors(6);
  Rng rng(6);
  const auto boxes = test::split_rows(tensors, 1, rng)[0];
  SnapshotRing ring = SnapshotRing::create(2, SnapshotRing::slot_bytes_for(boxes, 100));
  ring.write(1, 8, 0, "{\"cursor\":1}", boxes);
  CheckpointWriter writer(temp.path(), 8, 1, "");
  writer.write_rank(ring.read(1));
  writer.commit();
  const auto checkpoint = newest_good(temp.path(), ignore);
  ASSERT_TRUE(checkpoint.has_value());
  EXPECT_EQ(test::difference(*checkpoint, tensors), "");
}

}  // namespace
}  // namespace chiliad::checkpoint
