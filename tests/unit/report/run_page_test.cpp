#include "chiliad/report/run_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "chiliad/base/error.h"
#include "chiliad/image/encode.h"
#include "chiliad/io/file.h"
#include "tests/support/temp_dir.h"

namespace chiliad::report {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kRunFile = "version: 1\nrun: {name: cats, steps: 20}\ndata: {index: nowhere}\n";

/// A run directory that a test writes by hand.
class RunFolder {
 public:
  [[nodiscard]] RunPaths paths() const {
    const auto root = folder_.path();
    return {root,
            root / "lock",
            root / "run.yaml",
            root / "log.jsonl",
            root / "metrics.jsonl",
            root / "journal.jsonl",
            root / "checkpoints",
            root / "incidents",
            root / "samples"};
  }
  void write(const std::string& name, std::string_view text) const {
    io::make_folders((folder_.path() / name).parent_path());
    io::write_atomic(folder_.path() / name, text);
  }
  void write_metrics(const std::vector<int64_t>& steps) const {
    std::string text;
    for (const int64_t step : steps) {
      observe::StepMetrics line;
      line.step = step;
      line.steps = 20;
      line.loss = 1.0 / static_cast<double>(step);
      line.items = 4;
      line.wall = 0.5;
      line.seconds[2] = 0.25;
      line.other = 0.25;
      line.flops = 1e9;
      line.peak_flops = 1e10;
      line.mfu = 0.2;
      text += line.to_json() + "\n";
    }
    write("metrics.jsonl", text);
  }
  [[nodiscard]] std::string page() const { return run_page(read_run(paths()), {}, {"now", 12, 200}); }
  [[nodiscard]] fs::path path() const { return folder_.path(); }

 private:
  test::TempDir folder_;
};

TEST(RunDataTest, RefusesAFolderThatIsNoRun) {
  const RunFolder folder;
  folder.write("notes.txt", "x");
  EXPECT_THROW((void)read_run(folder.paths()), InvalidInput);
}

TEST(RunDataTest, RefusesAFolderThatIsNotThere) {
  const RunFolder folder;
  auto paths = folder.paths();
  paths.folder /= "nothing";
  EXPECT_THROW((void)read_run(paths), InvalidInput);
}

TEST(RunDataTest, OfStepsThatCameAgainTheLastHold) {
  const RunFolder folder;
  folder.write_metrics({1, 2, 3, 4, 3, 5});
  const auto run = read_run(folder.paths());
  std::vector<int64_t> steps;
  for (const auto& line : run.metrics) steps.push_back(line.step);
  EXPECT_EQ(steps, (std::vector<int64_t>{1, 2, 3, 5}));
}

TEST(RunDataTest, ALineThatIsBeingWrittenIsNoFailure) {
  const RunFolder folder;
  folder.write("metrics.jsonl", observe::StepMetrics().to_json() + "\n{\"step\": 2, \"lo");
  const auto run = read_run(folder.paths());
  EXPECT_EQ(run.metrics.size(), 1U);
  EXPECT_THAT(run.problems, testing::ElementsAre(HasSubstr("1 lines cannot be read")));
}

TEST(RunDataTest, KnowsWhoIsRunning) {
  const RunFolder folder;
  folder.write("run.yaml", kRunFile);
  EXPECT_EQ(read_run(folder.paths()).state(), "nothing written yet");
  const auto lock = io::FileLock::try_lock(folder.paths().lock, "pid 12 on host there");
  ASSERT_TRUE(lock.has_value());
  const auto run = read_run(folder.paths());
  EXPECT_EQ(run.state(), "running");
  EXPECT_EQ(run.owner, "pid 12 on host there");
}

TEST(RunDataTest, ReadingDoesNotTakeTheLock) {
  const RunFolder folder;
  { const auto lock = io::FileLock::try_lock(folder.paths().lock, "x"); }
  const auto run = read_run(folder.paths());
  EXPECT_EQ(run.state(), "nothing written yet");
  EXPECT_TRUE(io::FileLock::try_lock(folder.paths().lock, "y").has_value());
}

TEST(RunDataTest, FindsResumesAndWarningsInTheLog) {
  const RunFolder folder;
  folder.write_metrics({1});
  folder.write("log.jsonl",
               "{\"time\":\"t\",\"level\":\"info\",\"message\":\"resuming from x/step-8.g1 (step 8)\"}\n"
               "{\"time\":\"t\",\"level\":\"warning\",\"message\":\"slow\"}\nnot json\n");
  const auto run = read_run(folder.paths());
  EXPECT_EQ(run.resumes, (std::vector<int64_t>{8}));
  EXPECT_EQ(run.num_warnings, 1);
}

TEST(RunPageTest, ShowsARunWithoutAnything) {
  const RunFolder folder;
  folder.write("run.yaml", kRunFile);
  const auto page = folder.page();
  EXPECT_THAT(page, HasSubstr("nothing written yet"));
  EXPECT_THAT(page, HasSubstr("No line of metrics has been written yet."));
}

TEST(RunPageTest, ShowsCurvesAndTheTimeAccount) {
  const RunFolder folder;
  folder.write("run.yaml", kRunFile);
  folder.write_metrics({1, 2, 3});
  const auto page = folder.page();
  EXPECT_THAT(page, HasSubstr("<figcaption>Loss</figcaption>"));
  EXPECT_THAT(
      page,
      HasSubstr("<bdi>forward</bdi></td><td class=\"n\"><bdi>0.750</bdi></td><td class=\"n\"><bdi>50.0 %"));
  EXPECT_THAT(page, HasSubstr("MFU 20.0 %"));
}

TEST(RunPageTest, EscapesWhatTheRunSays) {
  const RunFolder folder;
  folder.write("run.yaml",
               "version: 1\nrun: {name: \"<script>alert(1)</script>\", steps: 20}\ndata: {index: x}\n");
  folder.write("journal.jsonl", "{\"from_step\":3,\"sample\":1,\"reason\":\"<img src=x onerror=y>\"}\n");
  folder.write("incidents/a.json", "{\"message\":\"<script>\",\"ranks\":[{\"rank\":0,\"phase\":\"<b>\"}]}");
  folder.write("log.jsonl", "{\"level\":\"error\",\"message\":\"</table><script>\"}\n");
  const auto page = folder.page();
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("<img src=x")));
  EXPECT_THAT(page, HasSubstr("&lt;img src=x onerror=y&gt;"));
}

TEST(RunPageTest, ShowsTheNewestSamplesInThePage) {
  const RunFolder folder;
  folder.write("run.yaml", kRunFile);
  const auto png = image::encode_png(HostArray(DType::kU8, Shape{2, 2, 3}));
  for (const int64_t step : {5, 10, 100}) {
    folder.write(fmt::format("samples/step-{}.png", step),
                 std::string_view(reinterpret_cast<const char*>(png.data()), png.size()));
  }
  const auto page = run_page(read_run(folder.paths()), {}, {"now", 2, 200});
  EXPECT_THAT(page, HasSubstr("<h3>Step 100</h3>"));
  EXPECT_THAT(page, HasSubstr("<h3>Step 10</h3>"));
  EXPECT_THAT(page, Not(HasSubstr("<h3>Step 5</h3>")));
  EXPECT_THAT(page, HasSubstr("data:image/png;base64,"));
}

TEST(RunPageTest, SaysWhyCoverageIsMissing) {
  const RunFolder folder;
  folder.write_metrics({1});
  const auto page = run_page(read_run(folder.paths()), {nullptr, "no such index"}, {"now", 12, 200});
  EXPECT_THAT(page, HasSubstr("Coverage is not shown: no such index"));
}

TEST(RunPageTest, DamagedPartsDoNotHideTheOthers) {
  const RunFolder folder;
  folder.write("run.yaml", "version: 1\nrun: {nonsense: 1}\n");
  folder.write_metrics({1, 2});
  const auto page = folder.page();
  EXPECT_THAT(page, HasSubstr("nonsense"));
  EXPECT_THAT(page, HasSubstr("<figcaption>Loss</figcaption>"));
}

}  // namespace
}  // namespace chiliad::report
