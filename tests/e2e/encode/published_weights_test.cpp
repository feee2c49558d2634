// Weights in the layout of diffusers into a run and out again, for every family on latents.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "chiliad/weights/weight_source.h"
#include "tests/support/kits.h"
#include "tests/support/picture_set.h"
#include "tests/support/program.h"
#include "tests/support/temp_dir.h"

namespace chiliad::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct Published {
  const char* golden;
  const char* model;      // options
  const char* objective;  // section
  int channels;           // of latents
  int pooled;             // 0: no captions
};

/// Encoders of the sizes that the golden networks want; what they give does not matter here.
constexpr const char* kEncoders = R"(
from array import array

def rows(*sizes):
    count = 1
    for size in sizes:
        count *= size
    return memoryview(array("f", [((i * 7) % 13) / 13.0 for i in range(count)])).cast("B").cast("f", list(sizes))

class Text:
    def encode(self, items):
        return [(rows(5, 20), rows(POOLED)) for _ in items]

class Pictures:
    def encode(self, items):
        count, height, width, _ = items.shape
        return [rows(CHANNELS, height // 4, width // 4) for _ in range(count)]
)";

class PublishedWeightsTest : public testing::TestWithParam<Published> {
 protected:
  static ProgramResult chiliad(const std::vector<std::string>& arguments) {
    std::vector<std::string> all{CHILIAD_BIN_DIR "/chiliad"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return Program(all, {}).wait();
  }
  static fs::path golden() { return golden_kit() / GetParam().golden; }
  [[nodiscard]] std::string path(const char* name) const { return (folder_.path() / name).string(); }

  void make() {
    const auto& given = GetParam();
    write_pictures(folder_.path() / "pictures", 8);
    if (given.pooled == 0) {
      for (const auto& entry : fs::directory_iterator(folder_.path() / "pictures"))
        if (entry.path().extension() == ".txt") std::ofstream(entry.path()) << "3\n";
    }
    index_pictures(folder_.path() / "pictures", folder_.path() / "index");
    std::ofstream(path("enc.py")) << "CHANNELS = " << given.channels
                                  << "\nPOOLED = " << std::max(1, given.pooled) << "\n"
                                  << kEncoders;
    std::ofstream(path("run.yaml"))
        << "version: 1\nrun: {steps: 2, dir: \"" << path("run") << "\"}\nmodel: {" << given.model
        << ", latent_pixels: 4, weights: \"" << golden().string() << "\"}\ndata: {index: \"" << path("index")
        << "\", batch: 4, resolution: 32, bucket_step: 8, bucket_min: 16, bucket_max: 64}\n"
        << "encoders: {pictures: \"" << path("enc.py:Pictures") << "\""
        << (given.pooled == 0 ? "" : ", text: \"" + path("enc.py:Text") + "\"") << "}\nobjective: {"
        << given.objective << "}\noptimizer: {lr: 1e-30}\n";
  }

  TempDir folder_;
};

TEST_P(PublishedWeightsTest, ComeBackBitByBit) {
  make();
  const auto encoded = chiliad({"encode", path("run.yaml"), "--quiet"});
  ASSERT_EQ(encoded.exit_code, 0) << encoded.err;
  // Steps too small to change a value.
  const auto trained = chiliad({"train", path("run.yaml"), "--nproc", "2", "--set", "parallel.dp_shard=2"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  ASSERT_EQ(chiliad({"ckpt", "export", path("run"), "--to", path("model")}).exit_code, 0);
  const auto got = weights::WeightSource::open(path("model"));
  const auto want = weights::WeightSource::open(golden());
  EXPECT_EQ(got.path().filename(), "diffusion_pytorch_model.safetensors");
  EXPECT_EQ(got.tensors().size(), want.tensors().size());
  for (const auto& tensor : want.tensors()) {
    const auto* ours = got.find(tensor.name);
    ASSERT_NE(ours, nullptr) << tensor.name;
    EXPECT_EQ(ours->shape, tensor.shape) << tensor.name;
    std::vector<std::byte> a(static_cast<size_t>(tensor.num_bytes()));
    std::vector<std::byte> b(static_cast<size_t>(ours->num_bytes()));
    want.read(tensor.name, a);
    got.read(tensor.name, b);
    EXPECT_TRUE(a == b) << tensor.name;
  }
  // What is exported is a start like any other, and its config.json is believed.
  EXPECT_EQ(chiliad({"train", path("run.yaml"), "--check", "--from-scratch", "--set",
                     "model.weights=" + path("model")})
                .exit_code,
            0);
}

TEST_P(PublishedWeightsTest, OptionsThatTheirConfigurationDeniesAreRefused) {
  make();
  const auto result = chiliad({"train", path("run.yaml"), "--check", "--set", "model.depth=3"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("model.depth: expected 2 as in"));
}

INSTANTIATE_TEST_SUITE_P(
    Families, PublishedWeightsTest,
    testing::Values(
        Published{"dit",
                  "family: dit, width: 24, depth: 2, heads: 3, patch: 2, latent_channels: 4, sample_size: 8, "
                  "classes: 10, learned_variance: true",
                  "kind: ddpm, prediction: noise", 4, 0},
        Published{"pixart_sigma",
                  "family: pixart, width: 24, depth: 2, heads: 3, patch: 2, latent_channels: 4, "
                  "sample_size: 8, text_channels: 20, interpolation_scale: 2.0, learned_variance: true",
                  "kind: ddpm, prediction: noise", 4, 3},
        Published{"sd3",
                  "family: sd3, width: 24, depth: 2, heads: 3, patch: 2, latent_channels: 6, sample_size: 8, "
                  "max_positions: 9, text_channels: 20, pooled_channels: 12",
                  "prediction: velocity", 6, 12},
        Published{"flux",
                  "family: flux, width: 32, depth: 2, heads: 2, patch: 2, latent_channels: 4, "
                  "single_depth: 2, rope_axes: [4, 6, 6], text_channels: 20, pooled_channels: 10",
                  "prediction: velocity", 4, 10}),
    [](const auto& given) { return std::string(given.param.golden); });

}  // namespace
}  // namespace chiliad::test
