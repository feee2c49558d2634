// Key layouts: the original files of DiT and PixArt, made here from those of diffusers, and repeats of DiT.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "chiliad/base/error.h"
#include "chiliad/io/file.h"
#include "chiliad/model/diffusion.h"
#include "chiliad/spec/families/families.h"
#include "chiliad/weights/configs/diffusion.h"
#include "chiliad/weights/safetensors.h"
#include "tests/support/kits.h"
#include "tests/support/safetensors_lite.h"
#include "tests/support/temp_dir.h"

namespace chiliad::model {
namespace {

using Tensors = std::map<std::string, at::Tensor>;
using testing::HasSubstr;

Tensors read_file(const std::string& folder) {
  Tensors tensors;
  for (auto& [name, lite] :
       test::read_safetensors_lite(test::golden_kit() / folder / "diffusion_pytorch_model.safetensors")) {
    auto bytes = lite.bytes;
    tensors[name] = at::from_blob(bytes.data(), lite.shape, at::TensorOptions(at::kFloat)).clone();
  }
  return tensors;
}

void write_file(const std::filesystem::path& path, const Tensors& tensors) {
  std::vector<weights::TensorBytes> specs;
  for (const auto& [name, tensor] : tensors) {
    const std::span<const float> values(tensor.const_data_ptr<float>(), static_cast<size_t>(tensor.numel()));
    specs.push_back({{name, DType::kF32, Shape(tensor.sizes().vec())}, std::as_bytes(values)});
  }
  auto file = io::File::create(path);
  weights::write_safetensors(file, specs, {});
  file.close();
}

class DiffusionKeysTest : public testing::TestWithParam<const char*> {
 protected:
  spec::DiffusionOptions options_ =
      weights::read_diffusion_config(test::golden_kit() / GetParam() / "config.json");
  Tensors file_ = read_file(GetParam());
  test::TempDir dir_;

  /// Moves a tensor of diffusers' file to its original key.
  void move(const std::string& from, const std::string& to) {
    for (const char* end : {".weight", ".bias", ""}) {
      const auto found = file_.find(from + end);
      if (found == file_.end()) continue;
      original_[to + end] = found->second;
      file_.erase(found);
    }
  }
  void fuse(const std::vector<std::string>& from, const std::string& to) {
    for (const char* end : {".weight", ".bias"}) {
      std::vector<at::Tensor> parts;
      for (const auto& name : from) {
        parts.push_back(file_.at(name + end));
        file_.erase(name + end);
      }
      original_[to + end] = at::cat(parts);
    }
  }
  void move_mlp(const std::string& from, const std::string& to) {
    move(from + ".linear_1", to + ".mlp.0");
    move(from + ".linear_2", to + ".mlp.2");
  }
  void move_block(int64_t index) {
    const std::string from = "transformer_blocks." + std::to_string(index) + ".";
    const std::string to = "blocks." + std::to_string(index) + ".";
    fuse({from + "attn1.to_q", from + "attn1.to_k", from + "attn1.to_v"}, to + "attn.qkv");
    move(from + "attn1.to_out.0", to + "attn.proj");
    move(from + "ff.net.0.proj", to + "mlp.fc1");
    move(from + "ff.net.2", to + "mlp.fc2");
    if (options_.family == "dit") {
      move(from + "norm1.linear", to + "adaLN_modulation.1");
      return;
    }
    move(from + "scale_shift_table", to + "scale_shift_table");
    move(from + "attn2.to_q", to + "cross_attn.q_linear");
    fuse({from + "attn2.to_k", from + "attn2.to_v"}, to + "cross_attn.kv_linear");
    move(from + "attn2.to_out.0", to + "cross_attn.proj");
  }
  void move_rest() {
    original_["pos_embed"] = at::zeros({1, 16, options_.width()});
    move("pos_embed.proj", "x_embedder.proj");
    if (options_.family == "dit") {
      move_mlp("transformer_blocks.0.norm1.emb.timestep_embedder", "t_embedder");
      move("transformer_blocks.0.norm1.emb.class_embedder.embedding_table", "y_embedder.embedding_table");
      move("proj_out_1", "final_layer.adaLN_modulation.1");
      move("proj_out_2", "final_layer.linear");
      std::erase_if(file_,
                    [](const auto& entry) { return entry.first.find(".norm1.emb.") != std::string::npos; });
      return;
    }
    move_mlp("adaln_single.emb.timestep_embedder", "t_embedder");
    move_mlp("adaln_single.emb.resolution_embedder", "csize_embedder");
    move_mlp("adaln_single.emb.aspect_ratio_embedder", "ar_embedder");
    move("adaln_single.linear", "t_block.1");
    move("caption_projection.linear_1", "y_embedder.y_proj.fc1");
    move("caption_projection.linear_2", "y_embedder.y_proj.fc2");
    original_["y_embedder.y_embedding"] = at::zeros({7, options_.text_channels});
    move("proj_out", "final_layer.linear");
    move("scale_shift_table", "final_layer.scale_shift_table");
  }

  Tensors original_;
};

TEST_P(DiffusionKeysTest, OriginalFilesGiveTheSameWeights) {
  const auto expected = load_diffusion_weights(options_, test::golden_kit() / GetParam());
  for (int64_t i = 0; i < options_.depth; ++i) move_block(i);
  move_rest();
  ASSERT_TRUE(file_.empty()) << file_.begin()->first;
  write_file(dir_.path() / "model.safetensors", original_);
  const auto actual = load_diffusion_weights(options_, dir_.path());
  for (size_t layer = 0; layer < expected.size(); ++layer) {
    for (size_t i = 0; i < expected[layer].size(); ++i)
      EXPECT_TRUE(actual[layer][i].equal(expected[layer][i])) << layer << " " << i;
  }
}

TEST_P(DiffusionKeysTest, AMissingTensorIsNamed) {
  file_.erase("transformer_blocks.1.ff.net.2.bias");
  write_file(dir_.path() / "model.safetensors", file_);
  try {
    (void)load_diffusion_weights(options_, dir_.path());
    FAIL();
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("1 missing: transformer_blocks.1.ff.net.2.bias"));
  }
}

INSTANTIATE_TEST_SUITE_P(Kit, DiffusionKeysTest, testing::Values("dit", "pixart_alpha_1024"),
                         [](const auto& test) { return std::string(test.index == 0 ? "Dit" : "Pixart"); });

TEST(DitRepeatsTest, EmbeddersThatDifferAreRefused) {
  Tensors file = read_file("dit");
  const std::string key = "transformer_blocks.1.norm1.emb.timestep_embedder.linear_1.bias";
  file.at(key) = file.at(key) + 1.0;
  const test::TempDir dir;
  write_file(dir.path() / "model.safetensors", file);
  try {
    (void)load_diffusion_weights(weights::read_diffusion_config(test::golden_kit() / "dit" / "config.json"),
                                 dir.path());
    FAIL();
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("'" + key + "': expected a copy"));
  }
}

}  // namespace
}  // namespace chiliad::model
