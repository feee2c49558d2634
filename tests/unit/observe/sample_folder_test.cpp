#include "chiliad/observe/sample_folder.h"

#include <gtest/gtest.h>

#include <string_view>

#include "chiliad/io/file.h"
#include "tests/support/temp_dir.h"

namespace chiliad::observe {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path) {
  io::write_atomic(path, std::string_view("png"));
}

std::vector<int64_t> steps_of(const std::vector<SampleFile>& files) {
  std::vector<int64_t> steps;
  for (const auto& file : files) steps.push_back(file.step);
  return steps;
}

TEST(SampleFolderTest, ListsPicturesByStep) {
  test::TempDir folder;
  for (const char* name :
       {"step-100.png", "step-20.png", "step-3.jpg", "step-x.png", "step-4-a.png", "grid.png"})
    write(folder.path() / name);
  EXPECT_EQ(steps_of(list_samples(folder.path())), (std::vector<int64_t>{20, 100}));
}

TEST(SampleFolderTest, AFolderThatIsNotThereIsEmpty) {
  test::TempDir folder;
  EXPECT_TRUE(list_samples(folder.path() / "samples").empty());
}

TEST(SampleWatchTest, GivesEachNewPictureOnce) {
  test::TempDir folder;
  write(folder.path() / "step-1.png");
  SampleWatch watch(folder.path());
  write(folder.path() / "step-2.png");
  EXPECT_EQ(steps_of(watch.take()), (std::vector<int64_t>{2}));
  EXPECT_TRUE(watch.take().empty());
}

TEST(SampleWatchTest, GivesAPictureThatIsWrittenAgain) {
  test::TempDir folder;
  const auto path = folder.path() / "step-1.png";
  write(path);
  SampleWatch watch(folder.path());
  fs::last_write_time(path, fs::last_write_time(path) + std::chrono::seconds(5));
  EXPECT_EQ(steps_of(watch.take()), (std::vector<int64_t>{1}));
}

}  // namespace
}  // namespace chiliad::observe
