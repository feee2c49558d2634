#include "chiliad/base/json_text.h"
#include "chiliad/weights/configs/language.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "chiliad/base/error.h"
#include "chiliad/io/file.h"
#include "chiliad/spec/layer_table.h"
#include "chiliad/weights/key_tables/model_keys.h"
#include "chiliad/weights/start_weights.h"
#include "tests/support/kits.h"
#include "tests/support/temp_dir.h"

namespace chiliad::weights {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class LanguageConfigTest : public testing::Test {
 protected:
  spec::ModelOptions read(const json& config) const {
    io::write_atomic(path(), json_text(config));
    return read_language_config(path());
  }
  std::string error_of(const json& config) const {
    try {
      static_cast<void>(read(config));
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "";
  }
  [[nodiscard]] std::filesystem::path path() const { return folder_.path() / "config.json"; }
  static json small() {
    return {{"model_type", "llama"},    {"hidden_size", 8},        {"num_hidden_layers", 1},
            {"num_attention_heads", 2}, {"intermediate_size", 16}, {"vocab_size", 32}};
  }

 private:
  test::TempDir folder_;
};

TEST_F(LanguageConfigTest, BothSpellingsOfRotaryOptionsAreRead) {
  json old_one = small();
  old_one["rope_theta"] = 5e5;
  old_one["rope_scaling"] = {{"type", "linear"}, {"factor", 4.0}};
  json new_one = small();
  new_one["rope_parameters"] = {{"rope_type", "linear"}, {"factor", 4.0}, {"rope_theta", 5e5}};
  for (const json& config : {old_one, new_one}) {
    const auto options = read(config);
    EXPECT_EQ(options.rope_theta, 5e5);
    EXPECT_EQ(options.rope_scaling, "linear");
    EXPECT_EQ(options.rope_factor, 4.0);
  }
}

TEST_F(LanguageConfigTest, ReadsBackWhatItWrites) {
  for (const char* scaling : {"none", "linear", "dynamic", "llama3", "yarn"}) {
    spec::ModelOptions options;
    options.family = "llama";
    options.width = 48;
    options.heads = 6;
    options.kv_heads = 2;
    options.head_size = 10;
    options.mlp_width = 64;
    options.vocabulary = 96;
    options.rope_theta = 12345.0;
    options.rope_scaling = scaling;
    const bool scaled = options.rope_scaling != "none";
    options.rope_factor = scaled ? 8.0 : 1.0;
    options.rope_original_context = scaled && options.rope_scaling != "linear" ? 64 : 0;
    const std::string text = language_config_json(options);
    const auto back = read(parse_json<json>(text));
    EXPECT_EQ(language_config_json(back), text) << scaling;
    EXPECT_EQ(back.rope_original_context, options.rope_original_context) << scaling;
  }
}

TEST_F(LanguageConfigTest, WhatIsNotSupportedIsNamed) {
  json config = small();
  config["hidden_act"] = "gelu";
  EXPECT_THAT(error_of(config), HasSubstr("hidden_act: expected silu, got \"gelu\""));
  config = small();
  config["rope_parameters"] = {{"rope_type", "longrope"}, {"rope_theta", 1e4}};
  EXPECT_THAT(error_of(config), HasSubstr("rope_type: expected default, linear, dynamic, llama3 or yarn"));
  config = small();
  config["model_type"] = "mistral";
  EXPECT_THAT(error_of(config), HasSubstr("model_type: expected llama or qwen2, got \"mistral\""));
  config = small();
  config.erase("vocab_size");
  EXPECT_THAT(error_of(config), HasSubstr("vocab_size: expected a value, got nothing"));
  config = small();
  config["hidden_size"] = "8";
  EXPECT_THAT(error_of(config), HasSubstr("hidden_size: expected a whole number"));
}

TEST_F(LanguageConfigTest, WhatWouldChangeTheNumbersIsNotPassedOver) {
  json config = small();
  config["hidden_size"] = 8.5;
  EXPECT_THAT(error_of(config), HasSubstr("hidden_size: expected a whole number, got 8.5"));
  config = small();
  config["partial_rotary_factor"] = 0.5;
  EXPECT_THAT(error_of(config), HasSubstr("partial_rotary_factor: expected 1, got 0.5"));
  config = small();
  config["logits_scaling"] = 2.0;
  EXPECT_THAT(error_of(config), HasSubstr("logits_scaling: expected 1, got 2.0"));
  config = small();
  config["rope_scaling"] = {
      {"rope_type", "yarn"}, {"factor", 2.0}, {"truncate", false}, {"original_max_position_embeddings", 16}};
  EXPECT_THAT(error_of(config), HasSubstr("truncate: expected true, got false"));
}

TEST_F(LanguageConfigTest, WhatIsNoJsonIsDamaged) {
  io::write_atomic(path(), std::string_view("{\"model_type\": "));
  EXPECT_THROW(static_cast<void>(read_language_config(path())), CorruptData);
  io::write_atomic(path(), std::string_view("[1]"));
  EXPECT_THROW(static_cast<void>(read_language_config(path())), CorruptData);
}

TEST(ModelKeysTest, KnownLayoutsBecomeOurs) {
  spec::ModelOptions options;
  options.family = "llama";
  options.tied = true;
  const auto keys = model_keys(options);
  const std::string ours = "model.layers.3.mlp.up_proj.weight";
  for (const char* theirs : {"model.layers.3.mlp.up_proj.weight", "layers.3.mlp.up_proj.weight",
                             "language_model.model.layers.3.mlp.up_proj.weight",
                             "model.language_model.layers.3.mlp.up_proj.weight"}) {
    EXPECT_EQ(keys.ours(theirs), ours) << theirs;
  }
  EXPECT_EQ(keys.ours("lm_head.weight"), std::nullopt);
  EXPECT_EQ(keys.ours("model.layers.0.self_attn.rotary_emb.inv_freq"), std::nullopt);
  EXPECT_EQ(keys.ours("vision_tower.vision_model.embeddings.class_embedding"), std::nullopt);
  options.tied = false;
  EXPECT_EQ(model_keys(options).ours("language_model.lm_head.weight"), "lm_head.weight");
}

/// The golden models with their own configuration, and with a wrong one.
class StartWeightsTest : public testing::TestWithParam<const char*> {
 protected:
  std::filesystem::path folder_ = test::golden_kit() / GetParam();
  spec::ModelOptions options_ = read_language_config(folder_ / "config.json");
  WeightSource source_ = WeightSource::open(folder_);

  std::string error() const {
    try {
      check_start_weights(source_, options_);
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "";
  }
};

TEST_P(StartWeightsTest, FitTheirConfiguration) {
  EXPECT_EQ(error(), "");
}

TEST_P(StartWeightsTest, AnotherRotaryBaseIsNamed) {
  options_.rope_theta = 5000.0;
  EXPECT_THAT(error(), AllOf(HasSubstr("model.rope_theta: expected 1"), HasSubstr("got 5000")));
}

TEST_P(StartWeightsTest, AnotherShapeIsNamed) {
  options_.mlp_width += 1;
  EXPECT_THAT(error(), HasSubstr("model.mlp_width: expected"));
}

INSTANTIATE_TEST_SUITE_P(Golden, StartWeightsTest, testing::Values("llama_llama3", "qwen2_untied"));

}  // namespace
}  // namespace chiliad::weights
