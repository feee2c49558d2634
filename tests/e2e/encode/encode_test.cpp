// Frozen encoders over a data set, and models trained on what they made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

#include "chiliad/io/file.h"
#include "chiliad/observe/metrics.h"
#include "tests/support/latent_run.h"
#include "tests/support/picture_set.h"
#include "tests/support/program.h"
#include "tests/support/temp_dir.h"

namespace chiliad::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class EncodeTest : public testing::Test {
 protected:
  void make(const std::string& family, int64_t pictures, int64_t steps = 8) {
    write_pictures(folder_.path() / "pictures", pictures);
    index_pictures(folder_.path() / "pictures", folder_.path() / "index");
    write_text_encoder(folder_.path() / "text");
    write_autoencoder(folder_.path() / "vae");
    std::ofstream(run_file()) << latent_run_file(family, folder_.path(), steps);
  }

  static ProgramResult chiliad(std::vector<std::string> arguments,
                               const Program::Environment& environment = {}) {
    arguments.insert(arguments.begin(), CHILIAD_BIN_DIR "/chiliad");
    return Program(arguments, environment).wait();
  }
  [[nodiscard]] ProgramResult encode(std::vector<std::string> more = {},
                                     const Program::Environment& environment = {}) const {
    more.insert(more.begin(), {"encode", run_file(), "--quiet"});
    return chiliad(more, environment);
  }
  [[nodiscard]] std::string run_file() const { return (folder_.path() / "run.yaml").string(); }
  [[nodiscard]] fs::path columns() const { return folder_.path() / "index" / "columns"; }

  /// Every file of the columns, by its place.
  [[nodiscard]] std::map<std::string, std::string> bytes() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(columns())) {
      if (entry.is_regular_file() && entry.path().filename() != "lock")
        files[fs::relative(entry.path(), columns()).string()] = io::read_text(entry.path(), 1 << 24);
    }
    return files;
  }
  [[nodiscard]] fs::path any_part() const {
    for (const auto& entry : fs::recursive_directory_iterator(columns())) {
      if (entry.path().filename() == "000000.safetensors" &&
          entry.path().string().find("latents") != std::string::npos)
        return entry.path();
    }
    return {};
  }

  TempDir folder_;
};

TEST_F(EncodeTest, KilledTenTimesItEndsWithTheSameBytes) {
  make("pixart", 460);  // eight parts a column
  ASSERT_EQ(encode().exit_code, 0);
  const auto want = bytes();
  ASSERT_EQ(want.size(), 19U);  // two columns of eight parts, column.json twice, the empty text
  fs::remove_all(columns());
  int killed = 0;
  for (int i = 0; i < 10; ++i) {
    // Before the first or the second part of what is left.
    const auto result = encode({"--nproc", "2"}, {{"CHILIAD_KILL_ENCODE", std::to_string(i % 2)}});
    killed += result.exit_code == 4 ? 1 : 0;
    EXPECT_THAT(result.err, HasSubstr("ended with signal 9 (Killed). What the others make is kept."));
  }
  EXPECT_EQ(killed, 10);
  const auto last = encode({"--nproc", "2"});
  EXPECT_EQ(last.exit_code, 0) << last.err;
  EXPECT_TRUE(bytes() == want);
}

TEST_F(EncodeTest, WhatIsThereIsNotMadeAgain) {
  make("pixart", 12);
  ASSERT_EQ(encode().exit_code, 0);
  const auto before = fs::last_write_time(any_part());
  ASSERT_EQ(encode().exit_code, 0);
  EXPECT_EQ(fs::last_write_time(any_part()), before);
}

TEST_F(EncodeTest, VerifyReadsTheColumns) {
  make("pixart", 12);
  ASSERT_EQ(encode().exit_code, 0);
  const auto verify = [&] {
    return chiliad({"data", "verify", (folder_.path() / "index").string(), "--quiet"});
  };
  const auto good = verify();
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("features of 2 encoded columns"));
  flip_bit(any_part());
  const auto damaged = verify();
  EXPECT_EQ(damaged.exit_code, 3);
  EXPECT_THAT(damaged.out, HasSubstr("000000.safetensors: feature "));
  EXPECT_THAT(damaged.out, HasSubstr("Remove the file and run `chiliad encode RUN.yaml` again"));
  fs::remove(any_part());
  ASSERT_EQ(encode().exit_code, 0);
  EXPECT_EQ(verify().exit_code, 0);
}

// As on a disk that is mounted to read alone.
TEST_F(EncodeTest, WholeColumnsWantNoLock) {
  make("pixart", 12);
  ASSERT_EQ(encode().exit_code, 0);
  const auto lock = io::FileLock::try_lock(any_part().parent_path().parent_path() / "lock", "test");
  ASSERT_TRUE(lock.has_value());
  const auto again = encode();
  EXPECT_EQ(again.exit_code, 0) << again.err;
  fs::remove(any_part());
  const auto refused = encode();
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("another chiliad encode is at work here"));
}

TEST_F(EncodeTest, TrainingWantsTheColumnsFirst) {
  make("pixart", 12);
  const auto result = chiliad({"train", run_file()});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("Run `chiliad encode RUN.yaml` first"));
  EXPECT_FALSE(fs::exists(folder_.path() / "run"));
  const auto checked = chiliad({"train", run_file(), "--check"});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_THAT(checked.out, HasSubstr("Before it can train, its data must be encoded"));
  fs::remove_all(folder_.path() / "vae");
  const auto without = chiliad({"train", run_file(), "--check"});
  EXPECT_EQ(without.exit_code, 0) << without.err;
  EXPECT_THAT(without.out, HasSubstr("which is no folder"));
  EXPECT_THAT(without.out, HasSubstr("Before it can train, an encoder that it names must be there"));
}

TEST_F(EncodeTest, StaleColumnsAreRefusedWithWhatDiffers) {
  make("pixart", 12);
  ASSERT_EQ(encode().exit_code, 0);
  const auto other = chiliad({"train", run_file(), "--set", "data.background=black"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("data.background: was white, is black"));
  flip_bit(folder_.path() / "vae" / "diffusion_pytorch_model.safetensors");
  const auto changed = chiliad({"train", run_file()});
  EXPECT_EQ(changed.exit_code, 2);
  EXPECT_THAT(changed.err, HasSubstr("encoder: was "));
}

TEST_F(EncodeTest, DamagedFeaturesAreSkippedByName) {
  make("pixart", 12);
  ASSERT_EQ(encode().exit_code, 0);
  flip_bit(any_part());
  const auto result = chiliad({"train", run_file()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("is skipped from now on"));
  EXPECT_THAT(result.err, HasSubstr("000000.safetensors: feature"));
}

TEST_F(EncodeTest, DamagedSummariesAndPartsSayWhatToDo) {
  make("pixart", 12);
  ASSERT_EQ(encode().exit_code, 0);
  const auto part = any_part();
  const auto summary = part.parent_path().parent_path() / "column.json";
  const auto good = io::read_text(summary, 1 << 20);
  auto changed = good;
  const std::string key = "\"scaling_factor\": ";
  changed.replace(changed.find(key) + key.size(), 1, "7");
  std::ofstream(summary) << changed;
  const auto trained = chiliad({"train", run_file()});
  EXPECT_EQ(trained.exit_code, 3) << trained.err;
  EXPECT_THAT(trained.err, HasSubstr("does not say what was written. Run `chiliad encode RUN.yaml` again"));
  ASSERT_EQ(encode().exit_code, 0);
  EXPECT_EQ(io::read_text(summary, 1 << 20), good);
  fs::resize_file(part, fs::file_size(part) / 2);
  const auto cut = chiliad({"train", run_file()});
  EXPECT_EQ(cut.exit_code, 3) << cut.err;
  EXPECT_THAT(cut.err, HasSubstr("Remove 000000.safetensors and run `chiliad encode RUN.yaml` again"));
  fs::remove(part);
  ASSERT_EQ(encode().exit_code, 0);
  EXPECT_EQ(chiliad({"train", run_file()}).exit_code, 0);
}

TEST_F(EncodeTest, PicturesThatCannotBeDecodedAreRefusedAndTrainingGoesOn) {
  make("pixart", 12);
  flip_bit(folder_.path() / "pictures" / (picture_name(3) + ".png"));
  const auto result = chiliad({"encode", run_file()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("refused 1"));
  const auto trained = chiliad({"train", run_file()});
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_THAT(trained.err, HasSubstr("is skipped from now on"));
}

TEST_F(EncodeTest, SaysWhereThereIsNothingToEncode) {
  make("pixart", 4);
  const auto result = chiliad({"encode", run_file(), "--set", "model.family=pixel_dit"});
  EXPECT_EQ(result.exit_code, 2);
}

TEST_F(EncodeTest, WidthsThatDoNotFitTheEncoderAreNamed) {
  make("pixart", 6);
  ASSERT_EQ(encode().exit_code, 0);
  const auto result = chiliad({"train", run_file(), "--check", "--set", "model.text_channels=40"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("model.text_channels: expected the text encoder's width of 36, got 40"));
}

TEST_F(EncodeTest, EncodersMayBeWrittenInPython) {
  make("pixart", 12);
  const auto encoder = (folder_.path() / "words.py").string();
  std::ofstream(encoder) << R"(
from array import array

class Words:
    def encode(self, items):
        rows = []
        for text in items:
            count = max(1, len(text.split()))
            values = array("f", [float(i % 7) - 3.0 for i in range(count * 12)])
            rows.append(memoryview(values).cast("B").cast("f", [count, 12]))
        return rows

class Broken:
    def encode(self, items):
        raise ValueError("no model here")
)";
  ASSERT_EQ(encode({"--python", encoder + ":Words"}).exit_code, 0);
  const auto trained = chiliad({"train", run_file(), "--set", "encoders.text=" + encoder + ":Words", "--set",
                                "model.text_channels=12"});
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  const auto broken = encode({"--python", encoder + ":Broken"});
  EXPECT_EQ(broken.exit_code, 2);
  EXPECT_THAT(broken.err, HasSubstr("ValueError: no model here"));
  const auto missing = encode({"--python", encoder + ":Nobody"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, HasSubstr("Nobody"));
}

/// In bf16 and in tiles: other columns beside the first ones, and pictures decoded the same way.
TEST_F(EncodeTest, EncodersComputeAsDeclared) {
  make("pixart", 12);
  ASSERT_EQ(encode().exit_code, 0);
  const auto first = bytes();
  const std::vector<std::string> declared{"--set", "encoders.compute=bf16",  "--set", "encoders.tile=16",
                                          "--set", "encoders.tile_overlap=8"};
  const auto with = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), declared.begin(), declared.end());
    return chiliad(arguments);
  };
  const auto stale = with({"train", run_file()});
  EXPECT_EQ(stale.exit_code, 2);
  EXPECT_THAT(stale.err, HasSubstr("encoders.compute"));
  ASSERT_EQ(with({"encode", run_file(), "--quiet"}).exit_code, 0);
  EXPECT_EQ(bytes().size(), 2 * first.size());
  const auto trained = with({"train", run_file()});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const auto run = (folder_.path() / "run").string();
  const auto pictures = [&](const std::string& name, std::vector<std::string> more) {
    const auto file = folder_.path() / name;
    more.insert(more.begin(), {"generate", run, "--prompt", "a", "--steps", "2", "--out", file.string()});
    const auto result = chiliad(more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return io::read_text(file, 1 << 20);
  };
  EXPECT_NE(pictures("tiles.png", {}),
            pictures("whole.png", {"--set", "encoders.tile=0", "--set", "encoders.tile_overlap=0"}));
  const auto odd = chiliad({"encode", run_file(), "--set", "encoders.tile=18"});
  EXPECT_EQ(odd.exit_code, 2);
  EXPECT_THAT(odd.err, HasSubstr("encoders.tile: tile and tile_overlap: expected multiples of 4"));
}

/// Networks with a guidance input are told a scale, in training and where pictures are made.
TEST_F(EncodeTest, EmbeddedGuidanceIsAnInput) {
  make("flux", 12);
  ASSERT_EQ(encode().exit_code, 0);
  const auto run = (folder_.path() / "run").string();
  const auto trained = chiliad({"train", run_file(), "--set", "model.guidance_input=true", "--set",
                                "objective.embedded_guidance=3.5", "--set", "optimizer.lr=0.05"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const auto pictures = [&](const std::string& name, std::vector<std::string> more) {
    const auto file = folder_.path() / name;
    more.insert(more.begin(), {"generate", run, "--prompt", "a", "--steps", "2", "--guidance", "1", "--out",
                               file.string()});
    const auto result = chiliad(more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return io::read_text(file, 1 << 20);
  };
  const auto usual = pictures("usual.png", {});
  EXPECT_EQ(pictures("said.png", {"--embedded-guidance", "3.5"}), usual);
  EXPECT_NE(pictures("other.png", {"--embedded-guidance", "50"}), usual);
}

TEST_F(EncodeTest, RecipesPassTheCheckBeforeAnythingIsEncoded) {
  make("pixart", 6);
  const auto recipes = fs::path(CHILIAD_TEST_DATA).parent_path().parent_path() / "recipes";
  for (const char* name : {"dit/dit-xl-2-256.yaml", "pixart/pixart-alpha-256.yaml",
                           "pixart/pixart-sigma-512.yaml", "stamps/pixart.yaml"}) {
    const auto result =
        chiliad({"train", (recipes / name).string(), "--check", "--set", "data.held_out=0", "--set",
                 "evaluation.every=0", "--set", "data.index=" + (folder_.path() / "index").string()});
    EXPECT_EQ(result.exit_code, 0) << name << ": " << result.err;
    EXPECT_THAT(result.out, HasSubstr("The run file is good")) << name;
  }
  // It starts from published weights, which are not here.
  const auto sd3 = chiliad({"train", (recipes / "sd3/sd3-medium-finetune.yaml").string(), "--check", "--set",
                            "data.index=" + (folder_.path() / "index").string()});
  EXPECT_EQ(sd3.exit_code, 2);
  EXPECT_THAT(sd3.err, HasSubstr("stable-diffusion-3-medium/transformer"));
}

/// Runs that hardly learn, of the same first weights: their validation losses differ by what measures them.
TEST_F(EncodeTest, ValidationLossesOfStepsAndLayoutsAreComparable) {
  make("pixart", 18);
  ASSERT_EQ(encode().exit_code, 0);
  const auto losses_of = [&](const std::string& run, std::vector<std::string> more) {
    more.insert(more.begin(), {"train", run_file(), "--set", "run.dir=" + (folder_.path() / run).string(),
                               "--set", "optimizer.lr=1e-12", "--set", "run.steps=2", "--set",
                               "evaluation.every=1", "--set", "evaluation.samples_every=0"});
    const auto result = chiliad(more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::vector<std::vector<double>> lines;  // the loss, and those by time
    std::ifstream file(folder_.path() / run / "metrics.jsonl");
    for (std::string line; std::getline(file, line);) {
      const auto metrics = observe::StepMetrics::from_json(line);
      lines.push_back({metrics.validation_loss.value_or(-1.0)});
      for (const double loss : metrics.validation_loss_by_time) lines.back().push_back(loss);
    }
    return lines;
  };
  const auto one = losses_of("one", {"--nproc", "1"});
  ASSERT_EQ(one.size(), 2U);
  ASSERT_EQ(one[0].size(), 5U);
  const auto two = losses_of("two", {"--nproc", "2", "--set", "data.micro_batch_items=1"});
  const auto drawn = losses_of("drawn", {"--nproc", "2", "--set", "evaluation.draws=3"});
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_GT(one[0][i], 0.0);
    EXPECT_NEAR(one[1][i], one[0][i], 1e-5 * one[0][i]) << "another step, " << i;
    EXPECT_NEAR(two[0][i], one[0][i], 1e-5 * one[0][i]) << "another layout, " << i;
    EXPECT_GT(std::abs(drawn[0][i] - one[0][i]), 1e-5 * one[0][i]) << "other draws, " << i;
  }
}

/// Every family on latents: encoded, proven on two ranks that share parameters, trained, resumed, and made
/// pictures with.
class LatentFamilyTest : public EncodeTest, public testing::WithParamInterface<const char*> {
 protected:
  /// Captions become numbers of classes.
  void name_classes() const {
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path() / "pictures"))
      if (entry.path().extension() == ".txt") std::ofstream(entry.path()) << "3\n";
    fs::remove_all(folder_.path() / "index");
    index_pictures(folder_.path() / "pictures", folder_.path() / "index");
  }
};

TEST_P(LatentFamilyTest, TrainsOnLatents) {
  const std::string family = GetParam();
  make(family, 18);
  if (family == "dit") name_classes();
  ASSERT_EQ(encode({"--nproc", "2"}).exit_code, 0);
  const auto proven = chiliad({"verify-layout", run_file(), "--nproc", "4", "--set", "parallel.dp_shard=2",
                               "--set", "data.micro_batch_items=2", "--steps", "3"});
  EXPECT_EQ(proven.exit_code, 0) << proven.out << proven.err;
  const auto half = chiliad({"train", run_file(), "--nproc", "2", "--set", "run.steps=4"});
  ASSERT_EQ(half.exit_code, 0) << half.err;
  const auto rest = chiliad({"train", run_file(), "--nproc", "2"});
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_THAT(rest.out, HasSubstr("done: step 8 of 8"));
  EXPECT_THAT(rest.err, testing::Not(HasSubstr("is skipped")));
  const auto metrics = io::read_text(folder_.path() / "run" / "metrics.jsonl", 1 << 20);
  EXPECT_THAT(metrics, HasSubstr("\"validation_loss\":"));
  EXPECT_TRUE(fs::exists(folder_.path() / "run" / "samples" / "step-6.png"));
  const auto grid = (folder_.path() / "grid.png").string();
  const auto made = chiliad({"generate", (folder_.path() / "run").string(), "--prompt", "3", "--steps", "3",
                             "--size", "32x24", "--out", grid});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_TRUE(fs::exists(grid));
}

/// The same in packs of pictures of any shapes: proven, trained, and resumed to the same bits.
TEST_P(LatentFamilyTest, TrainsOnPacks) {
  const std::string family = GetParam();
  make(family, 18);
  if (family == "dit") name_classes();
  ASSERT_EQ(encode({"--nproc", "2"}).exit_code, 0);
  const std::vector<std::string> pack{
      "--set", "data.mode=pack", "--set",
      family == "dit" || family == "pixart" ? "data.micro_batch_tokens=40" : "data.micro_batch_tokens=100"};
  const auto with = [&](std::vector<std::string> arguments, const std::string& run) {
    arguments.insert(arguments.end(), pack.begin(), pack.end());
    if (!run.empty())
      arguments.insert(arguments.end(), {"--set", "run.dir=" + (folder_.path() / run).string()});
    return chiliad(arguments);
  };
  const auto proven =
      with({"verify-layout", run_file(), "--nproc", "4", "--set", "parallel.dp_shard=2", "--steps", "3"}, "");
  EXPECT_EQ(proven.exit_code, 0) << proven.out << proven.err;
  const auto whole = with({"train", run_file(), "--nproc", "2"}, "whole");
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  ASSERT_EQ(with({"train", run_file(), "--nproc", "2", "--set", "run.steps=4"}, "parts").exit_code, 0);
  const auto rest = with({"train", run_file(), "--nproc", "2"}, "parts");
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_THAT(rest.out, HasSubstr("done: step 8 of 8"));
  const auto same =
      chiliad({"ckpt", "diff", (folder_.path() / "whole").string(), (folder_.path() / "parts").string()});
  EXPECT_EQ(same.exit_code, 0) << same.out << same.err;
}

INSTANTIATE_TEST_SUITE_P(Families, LatentFamilyTest, testing::Values("dit", "pixart", "sd3", "flux"),
                         [](const auto& given) { return std::string(given.param); });

TEST_F(EncodeTest, AutoencodersAreTrainedExportedAndUsed) {
  make("pixart", 18);
  const auto vae_run = (folder_.path() / "vae.yaml").string();
  std::ofstream(vae_run) << "version: 1\nrun: {steps: 6, dir: \"" << (folder_.path() / "vae_run").string()
                         << "\"}\nmodel: {family: autoencoder, stage_channels: [8, 8, 16], norm_groups: 4, "
                            "layers_per_stage: 1}\ndata: {index: \""
                         << (folder_.path() / "index").string()
                         << "\", languages: [], batch: 6, resolution: 32, bucket_min: 16, bucket_max: 64}\n"
                            "objective: {kind: reconstruction}\noptimizer: {ema: 0.9}\n";
  const auto proven = chiliad({"verify-layout", vae_run, "--nproc", "2", "--set", "parallel.dp_shard=2",
                               "--set", "optimizer.lr=1e-5", "--steps", "3"});
  EXPECT_EQ(proven.exit_code, 0) << proven.out << proven.err;
  const auto trained = chiliad({"train", vae_run, "--nproc", "2"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const auto exported = chiliad({"ckpt", "export", (folder_.path() / "vae_run").string(), "--to",
                                 (folder_.path() / "own").string(), "--average"});
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  const auto own = "encoders.pictures=" + (folder_.path() / "own").string();
  ASSERT_EQ(encode({"--set", own}).exit_code, 0);
  EXPECT_EQ(chiliad({"train", run_file(), "--set", own}).exit_code, 0);
}

}  // namespace
}  // namespace chiliad::test
