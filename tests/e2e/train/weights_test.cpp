// From published weights into a run, and from a run back to the published layout.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "chiliad/base/json_text.h"
#include "chiliad/io/file.h"
#include "chiliad/weights/weight_source.h"
#include "tests/support/kits.h"
#include "tests/support/made_documents.h"
#include "tests/support/program.h"

namespace chiliad::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// Steps too small to change a value.
class WeightsTest : public testing::Test {
 protected:
  WeightsTest() {
    std::ofstream(run_file())
        << "version: 1\nrun: {seed: 7, steps: 2, dir: \"" + run_dir() +
               "\"}\n"
               "model: {family: llama, width: 36, depth: 2, heads: 6, kv_heads: 2, "
               "head_size: 12, mlp_width: 52, vocabulary: 768, tied: true, norm_eps: 1e-5, "
               "rope_scaling: llama3, rope_factor: 4.0, rope_original_context: 16, weights: \"" +
               golden().string() +
               "\"}\n"
               "data: {index: \"" +
               documents_.index().folder().string() +
               "\", mode: pack, batch: 6, sequence_length: 64, micro_batch_tokens: 96}\n"
               "optimizer: {lr: 1e-30, ema: 0.9}\ncheckpoint: {every: 2}\n";
  }

  static ProgramResult chiliad(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), CHILIAD_BIN_DIR "/chiliad");
    return Program(arguments, {}).wait();
  }
  static fs::path golden() { return golden_kit() / "llama_llama3"; }
  static std::string text_of(const fs::path& path) { return io::read_text(path, 1 << 24); }
  [[nodiscard]] std::string run_file() const { return (folder_.path() / "run.yaml").string(); }
  [[nodiscard]] std::string run_dir() const { return (folder_.path() / "run").string(); }
  [[nodiscard]] std::string out(const char* name) const { return (folder_.path() / name).string(); }

  TempDir folder_;
  MadeDocuments documents_{12};
};

TEST_F(WeightsTest, ComeBackBitByBitFromAnyLayout) {
  const auto trained = chiliad({"train", run_file(), "--quiet", "--nproc", "4", "--set",
                                "parallel.dp_shard=2", "--set", "parallel.tp=2"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const auto exported = chiliad({"ckpt", "export", run_dir(), "--to", out("model")});
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_EQ(text_of(fs::path(out("model")) / "model.safetensors"), text_of(golden() / "model.safetensors"));
  // What is exported is a start like any other.
  EXPECT_EQ(chiliad({"train", run_file(), "--check", "--set", "model.weights=" + out("model")}).exit_code, 0);
}

TEST_F(WeightsTest, SeveralFilesHaveAnIndex) {
  ASSERT_EQ(chiliad({"train", run_file(), "--quiet"}).exit_code, 0);
  const auto exported = chiliad({"ckpt", "export", run_dir(), "--to", out("model"), "--average", "--dtype",
                                 "bf16", "--file-bytes", "60000"});
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  const auto source = weights::WeightSource::open(out("model"));
  const auto original = weights::WeightSource::open(golden());
  EXPECT_EQ(source.path().filename(), "model.safetensors.index.json");
  EXPECT_EQ(source.tensors().size(), original.tensors().size());
  for (const auto& tensor : source.tensors()) {
    EXPECT_EQ(tensor.dtype, DType::kBF16);
    std::vector<uint16_t> narrow(static_cast<size_t>(tensor.shape.count()));
    std::vector<uint32_t> wide(narrow.size());
    source.read(tensor.name, std::as_writable_bytes(std::span(narrow)));
    original.read(tensor.name, std::as_writable_bytes(std::span(wide)));
    for (size_t i = 0; i < wide.size(); ++i) {
      const uint32_t rounded = (wide[i] + 0x7FFFU + ((wide[i] >> 16U) & 1U)) >> 16U;
      ASSERT_EQ(narrow[i], rounded) << tensor.name << " " << i;
    }
  }
}

TEST_F(WeightsTest, AnExportNeverReplacesAFolder) {
  ASSERT_EQ(chiliad({"train", run_file(), "--quiet"}).exit_code, 0);
  fs::create_directory(out("model"));
  const auto refused = chiliad({"ckpt", "export", run_dir(), "--to", out("model")});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("expected a folder that is not there yet"));
  EXPECT_TRUE(fs::is_empty(out("model")));
}

TEST_F(WeightsTest, TwoExportsAtOnceLeaveOneWholeModel) {
  ASSERT_EQ(chiliad({"train", run_file(), "--quiet"}).exit_code, 0);
  fs::create_directories(out("model.partial"));  // somebody's own
  std::ofstream(out("model.partial") + "/notes") << "precious";
  const std::vector<std::string> argv{CHILIAD_BIN_DIR "/chiliad", "ckpt", "export", run_dir(), "--to",
                                      out("model") + "/"};
  Program first(argv, {});
  Program second(argv, {});
  const int codes = (first.wait().exit_code == 0 ? 1 : 0) + (second.wait().exit_code == 0 ? 1 : 0);
  EXPECT_EQ(codes, 1);
  EXPECT_EQ(text_of(fs::path(out("model")) / "model.safetensors"), text_of(golden() / "model.safetensors"));
  EXPECT_EQ(text_of(fs::path(out("model.partial")) / "notes"), "precious");
}

TEST_F(WeightsTest, ARunThatResumesDoesNotNeedThem) {
  fs::copy(golden(), out("start"));
  const std::string weights = "model.weights=" + out("start");
  ASSERT_EQ(chiliad({"train", run_file(), "--quiet", "--set", weights}).exit_code, 0);
  fs::remove_all(out("start"));
  const auto resumed = chiliad({"train", run_file(), "--quiet", "--set", weights, "--set", "run.steps=3"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
}

TEST_F(WeightsTest, ValuesThatAreNoNumbersAreNamed) {
  fs::copy(golden(), out("start"));
  const auto path = fs::path(out("start")) / "model.safetensors";
  const auto source = weights::WeightSource::open(path);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(source.find("model.norm.weight")->begin);
  file.write("\x00\x00\xc0\x7f", 4);
  file.close();
  const auto refused = chiliad({"train", run_file(), "--quiet", "--set", "model.weights=" + out("start")});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("tensor 'model.norm.weight' has values that are NaN"));
}

TEST_F(WeightsTest, DifferencesOfCheckpointsAreNamed) {
  ASSERT_EQ(chiliad({"train", run_file(), "--quiet"}).exit_code, 0);
  const auto other = out("other");
  ASSERT_EQ(
      chiliad({"train", run_file(), "--quiet", "--set", "run.dir=" + other, "--set", "optimizer.lr=1e-3"})
          .exit_code,
      0);
  const auto same = chiliad({"ckpt", "diff", run_dir(), run_dir()});
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("0 of 80 tensors differ"));
  const auto different = chiliad({"ckpt", "diff", run_dir(), other});
  EXPECT_EQ(different.exit_code, 1);
  EXPECT_THAT(different.out, HasSubstr("model/model.embed_tokens.weight: largest difference"));
  EXPECT_THAT(different.out, HasSubstr("optimizer.lr: 1e-30 and 0.001"));
}

TEST_F(WeightsTest, AnImportedStartTrainsAsIfTheWeightsWereNamed) {
  const std::string lr = "optimizer.lr=1e-3";
  const auto other = out("other");
  const auto imported = chiliad(
      {"ckpt", "import", golden(), "--run", run_file(), "--quiet", "--set", lr, "--set", "run.dir=" + other});
  ASSERT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_THAT(imported.out, HasSubstr("step-0.g"));
  EXPECT_EQ(chiliad({"ckpt", "verify", other}).exit_code, 0);
  const auto same = chiliad({"ckpt", "diff", other, golden()});
  EXPECT_EQ(same.exit_code, 0) << same.out << same.err;
  EXPECT_THAT(same.out, HasSubstr("0 of 20 tensors differ"));
  ASSERT_EQ(chiliad({"train", run_file(), "--quiet", "--set", lr}).exit_code, 0);
  const auto trained = chiliad({"train", run_file(), "--quiet", "--nproc", "2", "--set",
                                "parallel.dp_shard=2", "--set", lr, "--set", "run.dir=" + other});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const auto apart = parse_json<nlohmann::json>(chiliad({"ckpt", "diff", run_dir(), other, "--json"}).out);
  for (const auto& tensor : apart["tensors"])
    EXPECT_LE(tensor["largest"].get<double>(), 1e-5 * tensor["magnitude"].get<double>()) << tensor;
}

TEST_F(WeightsTest, AnImportNeverMixesWithARunThatHasCheckpoints) {
  ASSERT_EQ(chiliad({"train", run_file(), "--quiet"}).exit_code, 0);
  const auto refused = chiliad({"ckpt", "import", golden(), "--run", run_file()});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("expected a run without checkpoints, got one with step 2"));
}

TEST_F(WeightsTest, AnImportReportsWhatDoesNotFit) {
  const auto refused =
      chiliad({"ckpt", "import", golden(), "--run", run_file(), "--set", "model.tied=false"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_FALSE(fs::exists(run_dir()));
}

TEST_F(WeightsTest, FoldersOfOtherTypesAreComparedByTheirValues) {
  ASSERT_EQ(chiliad({"train", run_file(), "--quiet"}).exit_code, 0);
  ASSERT_EQ(chiliad({"ckpt", "export", run_dir(), "--to", out("model"), "--dtype", "bf16"}).exit_code, 0);
  const auto different = chiliad({"ckpt", "diff", golden(), out("model")});
  EXPECT_EQ(different.exit_code, 1);
  EXPECT_THAT(different.out, HasSubstr("model.norm.weight: F32 and BF16; largest difference "));
  EXPECT_EQ(chiliad({"ckpt", "diff", golden(), golden()}).exit_code, 0);
}

TEST_F(WeightsTest, AConfigurationThatDisagreesIsRefusedBeforeTheStart) {
  const auto refused = chiliad({"train", run_file(), "--quiet", "--set", "model.rope_factor=8"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("model.rope_factor: expected 4 as in"));
  EXPECT_FALSE(fs::exists(run_dir()));
  const auto missing = chiliad({"train", run_file(), "--check", "--set", "model.weights=nowhere"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, HasSubstr("got nowhere, which is not there"));
}

}  // namespace
}  // namespace chiliad::test
