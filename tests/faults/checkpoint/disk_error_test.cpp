#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "chiliad/base/error.h"
#include "chiliad/checkpoint/commit.h"
#include "chiliad/checkpoint/reader.h"
#include "chiliad/io/faults.h"
#include "tests/support/checkpoint_kit.h"
#include "tests/support/temp_dir.h"

namespace chiliad::checkpoint {
namespace {

namespace fs = std::filesystem;

struct Fault {
  const char* name;
  io::FaultAction action;
};

void ignore(const std::string&, const std::string&) {}

/// Fails the n-th file operation, once.
class FailOnce {
 public:
  FailOnce(int nth, io::FaultAction action)
      : nth_(nth), action_(action), hook_([this](io::FileOp op, const std::string&) {
          if (++count_ != nth_) return io::FaultAction{};
          io::FaultAction now = action_;
          if (op != io::FileOp::kWrite) now.short_write = false;
          return now;
        }) {}
  [[nodiscard]] bool hit() const { return count_ >= nth_; }

 private:
  int nth_;
  io::FaultAction action_;
  std::atomic<int> count_{0};
  io::ScopedFaultHook hook_;
};

class DiskErrorTest : public testing::TestWithParam<Fault> {
 protected:
  DiskErrorTest() { test::save_checkpoint(original_.path(), 1, old_, 2, 1); }

  fs::path fresh_folder(const test::TempDir& temp) const {
    fs::copy(original_.path(), temp.path() / "checkpoints", fs::copy_options::recursive);
    return temp.path() / "checkpoints";
  }

  /// Saves step 2 as the supervisor does. Returns the error's text, or nothing.
  std::string save(const fs::path& folder) const {
    Rng rng(3);
    const auto ranks = test::split_rows(new_, 2, rng);
    std::unique_ptr<CheckpointWriter> writer;
    try {
      writer = std::make_unique<CheckpointWriter>(folder, 2, 2, "");
      for (int rank = 0; rank < 2; ++rank) {
        writer->write_rank(test::view_of(2, rank, "{}", ranks[static_cast<size_t>(rank)]));
      }
      writer->commit();
    } catch (const Unavailable& error) {
      if (writer != nullptr) writer->abandon();
      return error.what();
    }
    return "";
  }

  std::vector<test::WholeTensor> old_ = test::make_tensors(1);
  std::vector<test::WholeTensor> new_ = test::make_tensors(2);
  test::TempDir original_;
};

TEST_P(DiskErrorTest, FailedSaveNamesThePathAndHarmsNothing) {
  for (int n = 1;; ++n) {
    SCOPED_TRACE("operation " + std::to_string(n));
    const test::TempDir temp;
    const fs::path folder = fresh_folder(temp);
    std::string message;
    {
      const FailOnce fault(n, GetParam().action);
      message = save(folder);
      if (!fault.hit()) break;
    }
    ASSERT_THAT(message, testing::HasSubstr(temp.path().string()));
    ASSERT_THAT(message, testing::HasSubstr(std::strerror(GetParam().action.error)));
    const auto best = newest_good(folder, ignore);
    ASSERT_TRUE(best.has_value());
    ASSERT_EQ(best->step(), 1);
    ASSERT_EQ(test::difference(*best, old_), "");
    ASSERT_EQ(save(folder), "");
    ASSERT_EQ(test::difference(*newest_good(folder, ignore), new_), "");
  }
}

TEST_P(DiskErrorTest, FailedPruneKeepsTheNewest) {
  const test::TempDir seeded;
  const fs::path two = fresh_folder(seeded);
  ASSERT_EQ(save(two), "");
  for (int n = 1;; ++n) {
    SCOPED_TRACE("operation " + std::to_string(n));
    const test::TempDir temp;
    fs::copy(two, temp.path(), fs::copy_options::recursive);
    {
      const FailOnce fault(n, GetParam().action);
      try {
        prune(temp.path(), 1);
      } catch (const Unavailable& error) {
        ASSERT_THAT(error.what(), testing::HasSubstr(temp.path().string()));
      }
      if (!fault.hit()) break;
    }
    ASSERT_EQ(newest_good(temp.path(), ignore)->step(), 2);
    prune(temp.path(), 1);
    ASSERT_EQ(list(temp.path()).size(), 1U);
    ASSERT_EQ(newest_good(temp.path(), ignore)->step(), 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Errors, DiskErrorTest,
                         testing::Values(Fault{"DiskFull", {ENOSPC, true}},
                                         Fault{"InputOutput", {EIO, false}}),
                         [](const auto& fault) { return std::string(fault.param.name); });

}  // namespace
}  // namespace chiliad::checkpoint
