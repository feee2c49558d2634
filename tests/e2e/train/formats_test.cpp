// Number formats that a run measures when it begins, and keeps.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "chiliad/base/json_text.h"
#include "chiliad/io/file.h"
#include "chiliad/spec/run_file.h"
#include "tests/support/train_job.h"

namespace chiliad::test {
namespace {

const std::vector<std::string> kAuto{"--set", "precision.compute=auto", "--set", "precision.products=auto"};

spec::RunFile settled(const TrainJob& job) {
  return spec::read_run_file((job.run_dir("run") / "run.yaml").string(), {});
}

TEST(FormatsTest, AreMeasuredByANewRunAndKept) {
  const TrainJob job(4);
  ASSERT_EQ(job.train("run", 2, {}, kAuto).exit_code, 0);
  const auto measured =
      parse_json<nlohmann::json>(io::read_text(job.run_dir("run") / "formats.json", 1 << 20));
  EXPECT_EQ(settled(job).parallel.compute, measured["compute"]);
  EXPECT_EQ(settled(job).parallel.products, measured["products"]);
  EXPECT_EQ(measured["measured"][0]["products"], "library");
  EXPECT_GT(measured["measured"][0]["cpu_seconds"], 0.0);
}

TEST(FormatsTest, AResumeTakesWhatTheRunBeganWith) {
  const TrainJob job(4);
  ASSERT_EQ(
      job.train("run", 1, {}, {"--set", "precision.compute=bf16", "--set", "precision.products=library"})
          .exit_code,
      0);
  std::vector<std::string> longer = kAuto;
  longer.insert(longer.end(), {"--set", "run.steps=6"});
  ASSERT_EQ(job.train("run", 1, {}, longer).exit_code, 0);
  EXPECT_EQ(settled(job).parallel.compute, "bf16");
  EXPECT_EQ(settled(job).parallel.products, "library");
  EXPECT_FALSE(std::filesystem::exists(job.run_dir("run") / "formats.json"));
}

}  // namespace
}  // namespace chiliad::test
