#include "chiliad/observe/tensorboard_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "chiliad/io/faults.h"
#include "tests/support/event_reader.h"
#include "tests/support/temp_dir.h"

namespace chiliad::observe {
namespace {

namespace fs = std::filesystem;

class FixedClock final : public Clock {
 public:
  [[nodiscard]] Nanoseconds now() const override { return Nanoseconds(0); }
  [[nodiscard]] Nanoseconds wall() const override { return std::chrono::seconds(seconds); }
  int64_t seconds = 1'700'000'000;
};

StepMetrics line(int64_t step) {
  StepMetrics metrics;
  metrics.step = step;
  metrics.loss = 0.5;
  metrics.wall = 2.0;
  metrics.seconds[static_cast<size_t>(Row::kForward)] = 0.5;
  metrics.other = 0.125;
  return metrics;
}

std::vector<fs::path> files(const fs::path& folder) {
  std::vector<fs::path> all;
  for (const auto& entry : fs::directory_iterator(folder)) all.push_back(entry.path());
  std::sort(all.begin(), all.end());
  return all;
}

TEST(TensorBoardWriterTest, BeginsWithVersionAndMarker) {
  test::TempDir folder;
  const FixedClock clock;
  TensorBoardWriter(folder.path(), 1, clock).add(line(1));
  const auto events = test::EventReader::read(files(folder.path()).at(0));
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].file_version, "brain.Event:2");
  EXPECT_TRUE(events[1].restart);
  EXPECT_EQ(events[1].step, 1);
}

TEST(TensorBoardWriterTest, WritesValuesUnderTheStep) {
  test::TempDir folder;
  const FixedClock clock;
  TensorBoardWriter(folder.path(), 1, clock).add(line(7));
  const auto event = test::EventReader::read(files(folder.path()).at(0)).at(2);
  EXPECT_EQ(event.step, 7);
  EXPECT_EQ(event.wall, 1'700'000'000.0);
  EXPECT_EQ(event.scalars.at("train/loss"), 0.5F);
}

TEST(TensorBoardWriterTest, RowsAreSharesOfTheWallTime) {
  test::TempDir folder;
  const FixedClock clock;
  TensorBoardWriter(folder.path(), 1, clock).add(line(7));
  const auto scalars = test::EventReader::read(files(folder.path()).at(0)).at(2).scalars;
  EXPECT_EQ(scalars.at("time/forward"), 0.25F);
  EXPECT_EQ(scalars.at("time/other"), 0.0625F);
}

TEST(TensorBoardWriterTest, AResumeVoidsTheStepsThatComeAgain) {
  test::TempDir folder;
  const FixedClock clock;
  TensorBoardWriter first(folder.path(), 1, clock);
  for (int64_t step = 1; step <= 9; ++step) first.add(line(step));
  TensorBoardWriter(folder.path(), 5, clock).add(line(6));
  const auto events = test::EventReader::read(files(folder.path()).at(1));
  EXPECT_TRUE(events.at(1).restart);
  EXPECT_EQ(events.at(1).step, 5);
}

TEST(TensorBoardWriterTest, LaterFilesSortBehindEarlierOnesWhateverTheClockSays) {
  test::TempDir folder;
  FixedClock clock;
  TensorBoardWriter(folder.path(), 1, clock).add(line(1));
  clock.seconds -= 100;
  TensorBoardWriter(folder.path(), 2, clock).add(line(2));
  EXPECT_EQ(test::EventReader::read(files(folder.path()).at(1)).at(2).step, 2);
}

TEST(TensorBoardWriterTest, MakesNoFileWithoutValues) {
  test::TempDir folder;
  const FixedClock clock;
  { const TensorBoardWriter writer(folder.path() / "tensorboard", 1, clock); }
  EXPECT_FALSE(fs::exists(folder.path() / "tensorboard"));
}

TEST(TensorBoardWriterTest, KeepsPictures) {
  test::TempDir folder;
  const FixedClock clock;
  const std::string png = "not really a picture";
  TensorBoardWriter(folder.path(), 1, clock).add(3, Picture{"samples/grid", std::as_bytes(std::span(png))});
  EXPECT_EQ(test::EventReader::read(files(folder.path()).at(0)).at(2).pngs.at("samples/grid"), png);
}

#ifdef CHILIAD_FAULTS
TEST(TensorBoardWriterTest, AFullDiskCostsEventsAndNothingElse) {
  test::TempDir folder;
  const FixedClock clock;
  TensorBoardWriter writer(folder.path(), 1, clock);
  writer.add(line(1));
  {
    io::ScopedFaultHook full([](io::FileOp op, const std::string&) {
      return op == io::FileOp::kWrite ? io::FaultAction{ENOSPC, false} : io::FaultAction{};
    });
    writer.add(line(2));
  }
  writer.add(line(3));
  EXPECT_EQ(writer.num_lost(), 1);
  const auto events = test::EventReader::read(files(folder.path()).at(1));
  EXPECT_EQ(events.at(1).step, 2);  // values of earlier steps stay
  EXPECT_EQ(events.at(2).step, 3);
}
#endif

}  // namespace
}  // namespace chiliad::observe
