#include "chiliad/spec/layer_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "chiliad/base/error.h"

namespace chiliad::spec {
namespace {

ModelOptions language(const std::string& family) {
  ModelOptions options;
  options.family = family;
  options.width = 24;
  options.depth = 2;
  options.heads = 4;
  options.kv_heads = 2;
  options.mlp_width = 40;
  options.vocabulary = 64;
  return options;
}

std::set<std::string> names(const ModelOptions& options) {
  std::set<std::string> found;
  for (const auto& layer : make_layer_table(options).layers) {
    for (const auto& param : layer.params) found.insert(param.name);
  }
  return found;
}

TEST(LayerTableTest, RefusesAnUnknownFamily) {
  EXPECT_THROW((void)make_layer_table(language("gpt")), InvalidInput);
}

TEST(LayerTableTest, LlamaHasNoBiases) {
  for (const auto& name : names(language("llama"))) EXPECT_FALSE(name.ends_with(".bias")) << name;
}

TEST(LayerTableTest, LlamaMayHaveAllBiases) {
  ModelOptions options = language("llama");
  options.attention_bias = true;
  options.mlp_bias = true;
  const auto found = names(options);
  for (const char* linear : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
                             "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}) {
    EXPECT_TRUE(found.contains(std::string("model.layers.1.") + linear + ".bias")) << linear;
  }
}

TEST(LayerTableTest, QwenHasBiasesOnQueryKeyAndValueAlone) {
  const auto found = names(language("qwen2"));
  std::set<std::string> biases;
  std::copy_if(found.begin(), found.end(), std::inserter(biases, biases.end()), [](const auto& name) {
    return name.starts_with("model.layers.0.") && name.ends_with(".bias");
  });
  EXPECT_EQ(biases, (std::set<std::string>{"model.layers.0.self_attn.k_proj.bias",
                                           "model.layers.0.self_attn.q_proj.bias",
                                           "model.layers.0.self_attn.v_proj.bias"}));
}

TEST(LayerTableTest, ATiedHeadHasNoTable) {
  ModelOptions options = language("qwen2");
  EXPECT_TRUE(names(options).contains("lm_head.weight"));
  options.tied = true;
  EXPECT_FALSE(names(options).contains("lm_head.weight"));
}

TEST(LayerTableTest, PackedDocumentsAttendToThemselves) {
  const auto table = make_layer_table(language("llama"));
  const LayerDecl& block = table.layers[1];
  const Work one = block.forward({1, 0, 12});
  const Work pack = block.forward({1, 0, 12, 5 * 5 + 7 * 7});
  EXPECT_DOUBLE_EQ(one.attention_flops, 4.0 * 144 * 24);
  EXPECT_DOUBLE_EQ(pack.attention_flops, 4.0 * 74 * 24);
  EXPECT_DOUBLE_EQ(pack.linear_flops, one.linear_flops);
}

}  // namespace
}  // namespace chiliad::spec
