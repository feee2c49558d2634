#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "chiliad/checkpoint/commit.h"
#include "chiliad/checkpoint/reader.h"
#include "chiliad/checkpoint/snapshot.h"
#include "chiliad/ipc/child_process.h"
#include "tests/support/checkpoint_kit.h"
#include "tests/support/temp_dir.h"

namespace chiliad::checkpoint {
namespace {

constexpr Nanoseconds kPatient = std::chrono::seconds(60);

void ignore(const std::string&, const std::string&) {}

/// Runs one disabled test of this binary in a process of its own.
ipc::ExitStatus run_self(const std::string& test_name,
                         std::vector<std::pair<std::string, std::string>> environment,
                         std::vector<int> inherit) {
  ipc::SpawnOptions options;
  options.argv = {"/proc/self/exe", "--gtest_also_run_disabled_tests", "--gtest_filter=" + test_name};
  options.environment = std::move(environment);
  options.inherit = std::move(inherit);
  ipc::ChildProcess child = ipc::ChildProcess::spawn(options);
  const auto status = child.wait(kPatient);
  EXPECT_TRUE(status.has_value()) << "the child hangs";
  return status.value_or(ipc::ExitStatus{});
}

/// The child of SaveIsKilled.
TEST(KilledProcessTest, DISABLED_Saver) {
  const char* folder = std::getenv("CHILIAD_TEST_FOLDER");
  ASSERT_NE(folder, nullptr);
  test::save_checkpoint(folder, 2, test::make_tensors(2), 2, 2);
  prune(folder, 1);
}

TEST(KilledProcessTest, SaveIsKilledAtItsOperations) {
  for (int n = 1; n < 1000; n += 9) {
    SCOPED_TRACE("killed at operation " + std::to_string(n));
    const test::TempDir temp;
    test::save_checkpoint(temp.path(), 1, test::make_tensors(1), 2, 1);
    const auto status = run_self("KilledProcessTest.DISABLED_Saver",
                                 {{"CHILIAD_TEST_FOLDER", temp.path().string()},
                                  {"CHILIAD_FILE_FAULT", "any:step-:" + std::to_string(n) + ":kill"}},
                                 {});
    const auto best = newest_good(temp.path(), ignore);
    ASSERT_TRUE(best.has_value());
    ASSERT_EQ(test::difference(*best, test::make_tensors(static_cast<uint64_t>(best->step()))), "");
    if (status.signal != SIGKILL) {  // there is no n-th operation
      EXPECT_EQ(status.to_string(), "exit code 0");
      EXPECT_EQ(best->step(), 2);
      return;
    }
  }
  FAIL() << "the save never ends";
}

/// The child of WorkerDiesInTheMiddleOfASnapshot: a whole snapshot of step 7 in slot 0, then death while it
/// copies into slot 1 from memory whose second half cannot be read.
TEST(KilledProcessTest, DISABLED_Worker) {
  const char* fd_text = std::getenv("CHILIAD_TEST_FD");
  ASSERT_NE(fd_text, nullptr);
  SnapshotRing ring = SnapshotRing::map(UniqueFd(std::stoi(fd_text)));
  constexpr int64_t kHalf = 1 << 20;
  void* memory = ::mmap(nullptr, 2 * kHalf, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const Shape shape{2 * kHalf};
  const OwnedBox box{
      "model", "w", DType::kU8, shape, Box::whole(shape), static_cast<const std::byte*>(memory)};
  ring.write(0, 7, 0, "{}", std::span(&box, 1));
  ASSERT_EQ(::mprotect(static_cast<std::byte*>(memory) + kHalf, kHalf, PROT_NONE), 0);
  ring.write(1, 8, 0, "{}", std::span(&box, 1));
}

TEST(KilledProcessTest, WorkerDiesInTheMiddleOfASnapshot) {
  const SnapshotRing ring = SnapshotRing::create(2, 3 << 20);
  const auto status = run_self("KilledProcessTest.DISABLED_Worker",
                               {{"CHILIAD_TEST_FD", std::to_string(ring.fd())}}, {ring.fd()});
  ASSERT_NE(status.to_string(), "exit code 0");
  EXPECT_EQ(ring.complete_step(0), 7);
  EXPECT_EQ(ring.read(0).boxes.size(), 1U);
  EXPECT_EQ(ring.complete_step(1), -1);
}

}  // namespace
}  // namespace chiliad::checkpoint
