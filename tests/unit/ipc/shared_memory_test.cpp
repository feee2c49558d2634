#include "chiliad/ipc/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "chiliad/base/error.h"
#include "chiliad/ipc/progress_page.h"

namespace chiliad::ipc {
namespace {

TEST(SharedMemoryTest, IsZeroedAndShared) {
  const SharedMemory ours = SharedMemory::create("test", 10'000);
  const SharedMemory theirs = SharedMemory::map(UniqueFd(::dup(ours.fd())));
  ASSERT_EQ(theirs.bytes().size(), 10'000U);
  EXPECT_EQ(theirs.bytes()[9'999], std::byte{0});
  ours.bytes()[9'999] = std::byte{5};
  EXPECT_EQ(theirs.bytes()[9'999], std::byte{5});
}

TEST(SharedMemoryTest, CannotBeShrunkByAPeer) {
  const SharedMemory memory = SharedMemory::create("test", 8192);
  EXPECT_NE(::ftruncate(memory.fd(), 0), 0);
}

TEST(SharedMemoryTest, RefusesADescriptorThatCanShrink) {
  UniqueFd open(::memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(open.get(), 4096), 0);
  EXPECT_THROW((void)SharedMemory::map(std::move(open)), CorruptData);
}

TEST(SharedMemoryTest, RefusesAnEmptyDescriptor) {
  UniqueFd empty(::memfd_create("empty", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_THROW((void)SharedMemory::map(std::move(empty)), CorruptData);
}

TEST(SharedMemoryTest, TooMuchIsUnavailable) {
  EXPECT_THROW((void)SharedMemory::create("huge", size_t{1} << 50), Unavailable);
}

TEST(ProgressPageTest, IsReadThroughAnotherMapping) {
  ProgressPage worker = ProgressPage::create();
  const ProgressPage parent = ProgressPage::map(UniqueFd(::dup(worker.fd())));
  worker.set({12, Phase::kBackward, 3, 77, 5, 0xab12, "await_reduce"});
  EXPECT_EQ(parent.fields().step.load(), 12);
  EXPECT_EQ(parent.fields().phase.load(), static_cast<uint32_t>(Phase::kBackward));
  EXPECT_EQ(parent.fields().slot.load(), 3);
  EXPECT_EQ(parent.fields().instruction.load(), 77);
  EXPECT_EQ(parent.fields().layer.load(), 5);
  EXPECT_EQ(parent.fields().program.load(), 0xab12U);
  EXPECT_EQ(parent.operation(), "await_reduce");
  EXPECT_GT(parent.fields().changed_ns.load(), 0);
}

TEST(ProgressPageTest, KeepsThirtyTwoBytesOfAnOperation) {
  ProgressPage page = ProgressPage::create();
  page.set({.operation = "an_operation_with_a_name_that_is_too_long"});
  EXPECT_EQ(page.operation(), "an_operation_with_a_name_that_is");
}

TEST(ProgressPageTest, AShorterNameLeavesNothingOfTheOneBefore) {
  ProgressPage page = ProgressPage::create();
  page.set({.operation = "await_reduce_replicas"});
  page.set({.operation = "loss"});
  EXPECT_EQ(page.operation(), "loss");
}

TEST(ProgressPageTest, RefusesMemoryThatIsTooSmall) {
  const SharedMemory small = SharedMemory::create("small", 16);
  EXPECT_THROW((void)ProgressPage::map(UniqueFd(::dup(small.fd()))), CorruptData);
}

TEST(ProgressPageTest, NamesOfPhases) {
  EXPECT_STREQ(phase_name(Phase::kDataWait), "data_wait");
  EXPECT_STREQ(phase_name(Phase::kFinished), "finished");
  EXPECT_STREQ(phase_name(static_cast<Phase>(99)), "unknown");
}

}  // namespace
}  // namespace chiliad::ipc
