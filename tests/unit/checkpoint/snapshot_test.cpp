#include "chiliad/checkpoint/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "chiliad/base/error.h"
#include "tests/support/checkpoint_kit.h"

namespace chiliad::checkpoint {
namespace {

using testing::HasSubstr;

constexpr int64_t kSlotBytes = 16'384;

class SnapshotRingTest : public testing::Test {
 protected:
  SnapshotRingTest() : boxes_(test::split_rows(tensors_, 1, rng_)[0]) {}

  std::string error_of(int slot) const {
    try {
      (void)ring_.read(slot);
    } catch (const CorruptData& error) {
      return error.what();
    }
    return "";
  }
  /// The mapped bytes of the ring.
  [[nodiscard]] std::span<std::byte> bytes() const { return mapping_.bytes(); }

  Rng rng_{5};
  std::vector<test::WholeTensor> tensors_ = test::make_tensors(1);
  std::vector<OwnedBox> boxes_;
  SnapshotRing ring_ = SnapshotRing::create(2, kSlotBytes);
  ipc::SharedMemory mapping_ = ipc::SharedMemory::map(UniqueFd(::dup(ring_.fd())));
};

TEST_F(SnapshotRingTest, ANewSlotHoldsNothing) {
  EXPECT_EQ(ring_.complete_step(0), -1);
  EXPECT_EQ(error_of(0), "snapshot slot 0: is incomplete");
}

TEST_F(SnapshotRingTest, TheParentReadsWhatTheWorkerWrote) {
  const SnapshotRing parent = SnapshotRing::map(UniqueFd(::dup(ring_.fd())));
  ring_.write(1, 42, 3, "{\"cursor\":7}", boxes_);
  EXPECT_EQ(parent.complete_step(1), 42);
  const auto view = parent.read(1);
  EXPECT_EQ(view.step, 42);
  EXPECT_EQ(view.rank, 3);
  EXPECT_EQ(view.state, "{\"cursor\":7}");
  ASSERT_EQ(view.boxes.size(), boxes_.size());
  for (size_t i = 0; i < boxes_.size(); ++i) {
    EXPECT_EQ(view.boxes[i].name, boxes_[i].name);
    EXPECT_EQ(view.boxes[i].box, boxes_[i].box);
    EXPECT_EQ(view.digests[i],
              positional_digest(boxes_[i].dtype, boxes_[i].shape, boxes_[i].box, boxes_[i].data));
    const size_t bytes = tensors_[i].data.size();
    EXPECT_TRUE(std::equal(boxes_[i].data, boxes_[i].data + bytes, view.boxes[i].data)) << boxes_[i].name;
  }
}

TEST_F(SnapshotRingTest, SlotsAreIndependent) {
  ring_.write(0, 1, 0, "{}", boxes_);
  ring_.write(1, 2, 0, "{}", boxes_);
  ring_.write(0, 3, 0, "{}", boxes_);
  EXPECT_EQ(ring_.complete_step(0), 3);
  EXPECT_EQ(ring_.read(1).step, 2);
}

TEST_F(SnapshotRingTest, DataIsAlignedTo64) {
  ring_.write(0, 1, 0, "{}", boxes_);
  for (const OwnedBox& box : ring_.read(0).boxes) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(box.data) % 64, 0U) << box.name;
  }
}

TEST_F(SnapshotRingTest, AFlippedBitInABoxIsNamed) {
  ring_.write(0, 1, 0, "{}", boxes_);
  const auto view = ring_.read(0);
  const_cast<std::byte*>(view.boxes[0].data)[3] ^= std::byte{4};
  EXPECT_THAT(error_of(0), HasSubstr("snapshot slot 0: model/embed.weight: expected digest"));
}

TEST_F(SnapshotRingTest, ADamagedTableIsFound) {
  ring_.write(0, 1, 0, "{}", boxes_);
  uint64_t table_at = 0;
  std::memcpy(&table_at, bytes().data() + 64 + 24, sizeof(table_at));
  bytes()[4096 + table_at + 5] ^= std::byte{1};
  EXPECT_EQ(error_of(0), "snapshot slot 0: the table does not have its checksum");
}

TEST_F(SnapshotRingTest, ATableOutsideOfTheSlotIsRefused) {
  ring_.write(0, 1, 0, "{}", boxes_);
  const uint64_t far = UINT64_MAX - 10;
  std::memcpy(bytes().data() + 64 + 24, &far, sizeof(far));
  EXPECT_EQ(error_of(0), "snapshot slot 0: the table is outside of the slot");
}

TEST_F(SnapshotRingTest, AWorkerThatDiesWhileWritingLeavesAnIncompleteSlot) {
  ring_.write(0, 1, 0, "{}", boxes_);
  const std::vector<std::byte> big(kSlotBytes);
  boxes_.push_back({"model", "big", DType::kU8, {kSlotBytes}, Box::whole({kSlotBytes}), big.data()});
  EXPECT_THROW(ring_.write(0, 2, 0, "{}", boxes_), InternalError);
  EXPECT_EQ(ring_.complete_step(0), -1);
  EXPECT_THROW((void)ring_.read(0), CorruptData);
}

TEST_F(SnapshotRingTest, SlotBytesForIsEnough) {
  const std::string state(1'000, ' ');
  SnapshotRing tight = SnapshotRing::create(1, SnapshotRing::slot_bytes_for(boxes_, 1'000));
  EXPECT_NO_THROW(tight.write(0, INT64_MAX, 0, state, boxes_));
  EXPECT_EQ(tight.read(0).state, state);
}

TEST_F(SnapshotRingTest, RefusesForeignMemory) {
  const auto other = ipc::SharedMemory::create("other", 8192);
  EXPECT_THROW((void)SnapshotRing::map(UniqueFd(::dup(other.fd()))), CorruptData);
}

TEST_F(SnapshotRingTest, RefusesSlotsThatDoNotFillTheMemory) {
  const uint32_t slots = 3;
  std::memcpy(bytes().data() + 12, &slots, sizeof(slots));
  EXPECT_THROW((void)SnapshotRing::map(UniqueFd(::dup(ring_.fd()))), CorruptData);
}

}  // namespace
}  // namespace chiliad::checkpoint
