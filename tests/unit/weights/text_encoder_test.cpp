// config.json and key layouts of text encoders, and modules.json of sentence-transformers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/io/file.h"
#include "chiliad/spec/families/families.h"
#include "chiliad/weights/configs/sentence_encoder.h"
#include "chiliad/weights/configs/text_encoder.h"
#include "tests/support/temp_dir.h"

namespace chiliad::weights {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

json bert() {
  return parse_json<json>(R"({"model_type": "bert", "hidden_size": 8, "num_hidden_layers": 1,
      "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 20, "max_position_embeddings": 12})");
}
json clip() {
  return parse_json<json>(R"({"model_type": "clip_text_model", "hidden_size": 8, "num_hidden_layers": 1,
      "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 20, "max_position_embeddings": 12,
      "eos_token_id": 19})");
}
json t5() {
  return parse_json<json>(R"({"model_type": "t5", "d_model": 8, "num_layers": 1, "num_heads": 2, "d_kv": 4,
      "d_ff": 16, "vocab_size": 20, "feed_forward_proj": "gated-gelu"})");
}

spec::TextEncoderOptions read(const json& config) {
  const test::TempDir dir;
  io::write_atomic(dir.path() / "config.json", json_text(config));
  return read_text_encoder_config(dir.path() / "config.json");
}

std::string refusal_with(json config, const char* key, const json& value) {
  config[key] = value;
  try {
    (void)read(config);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(TextEncoderConfigTest, ReadsBert) {
  const auto options = read(bert());
  EXPECT_EQ(options.family, "bert");
  EXPECT_EQ(options.head_size, 4);
  EXPECT_EQ(options.positions, 12);
}

TEST(TextEncoderConfigTest, GatedGeluOfT5IsTheTanhForm) {
  EXPECT_EQ(read(t5()).activation, "gelu_tanh");
  EXPECT_TRUE(read(t5()).gated);
}

TEST(TextEncoderConfigTest, OldEndTokenOfClipPoolsAtTheLargestId) {
  json config = clip();
  config["eos_token_id"] = 2;
  EXPECT_TRUE(read(config).pool_at_largest);
  EXPECT_FALSE(read(clip()).pool_at_largest);
}

TEST(TextEncoderConfigTest, TextHalfOfClipIsProjected) {
  const json config{{"model_type", "clip"}, {"text_config", clip()}, {"projection_dim", 6}};
  EXPECT_EQ(read(config).projection, 6);
}

TEST(TextEncoderConfigTest, NamesBadValues) {
  EXPECT_THAT(
      refusal_with(bert(), "model_type", "roberta"),
      HasSubstr("config.json: model_type: expected bert, clip, clip_text_model or t5, got \"roberta\""));
  EXPECT_THAT(refusal_with(bert(), "hidden_act", "silu"), HasSubstr("hidden_act: expected gelu"));
  EXPECT_THAT(refusal_with(bert(), "hidden_size", "8"),
              HasSubstr("hidden_size: expected a whole number, got"));
  EXPECT_THAT(refusal_with(bert(), "hidden_size", -8), HasSubstr("hidden_size: expected a number from 0"));
  EXPECT_THAT(refusal_with(bert(), "num_attention_heads", 3),
              HasSubstr("num_attention_heads: expected a divisor of hidden_size, got 3"));
  EXPECT_THAT(refusal_with(bert(), "num_attention_heads", 0), HasSubstr("num_attention_heads: expected"));
  EXPECT_THAT(refusal_with(bert(), "position_embedding_type", "relative_key"),
              HasSubstr("position_embedding_type: expected absolute"));
  EXPECT_THAT(refusal_with(bert(), "is_decoder", true), HasSubstr("is_decoder: expected false, got true"));
  EXPECT_THAT(refusal_with(t5(), "feed_forward_proj", "gated-silu"),
              HasSubstr("feed_forward_proj: expected"));
  EXPECT_THAT(refusal_with(t5(), "d_kv", nullptr), HasSubstr("d_kv: expected a whole number, got null"));
}

TEST(TextEncoderConfigTest, OtherTextIsRefused) {
  const test::TempDir dir;
  io::write_atomic(dir.path() / "config.json", "[1]");
  EXPECT_THROW((void)read_text_encoder_config(dir.path() / "config.json"), InvalidInput);
}

/// The file of a model under its own names.
std::vector<NamedShape> file_of(const spec::TextEncoderOptions& options) {
  return parameters_of(spec::families::text_encoder_table(options));
}

KeyMatch match(const spec::TextEncoderOptions& options, const std::vector<NamedShape>& file) {
  return match_keys(text_encoder_keys(options), file_of(options), file);
}

void replace(std::vector<NamedShape>& file, const std::string& from, const std::string& to) {
  for (NamedShape& tensor : file) {
    const size_t at = tensor.name.find(from);
    if (at != std::string::npos) tensor.name.replace(at, from.size(), to);
  }
}

TEST(TextEncoderKeysTest, OwnNamesOfEachFamilyFit) {
  for (const json& config : {bert(), clip(), t5()}) {
    const auto options = read(config);
    EXPECT_EQ(match(options, file_of(options)).report(), "") << options.family;
  }
}

TEST(TextEncoderKeysTest, OldBertFilesFit) {
  const auto options = read(bert());
  auto file = file_of(options);
  replace(file, "LayerNorm.weight", "LayerNorm.gamma");
  replace(file, "LayerNorm.bias", "LayerNorm.beta");
  for (NamedShape& tensor : file) tensor.name.insert(0, "bert.");
  file.push_back({"bert.embeddings.position_ids", Shape{1, 12}});
  file.push_back({"cls.predictions.bias", Shape{20}});
  EXPECT_EQ(match(options, file).report(), "");
}

TEST(TextEncoderKeysTest, BertWithoutPoolerIgnoresTheFilesOne) {
  auto options = read(bert());
  const auto file = file_of(options);
  options.pooler = false;
  EXPECT_EQ(match(options, file).report(), "");
}

TEST(TextEncoderKeysTest, ClipFilesWithoutPrefixFit) {
  const auto options = read(clip());
  auto file = file_of(options);
  replace(file, "text_model.", "");
  file.push_back({"embeddings.position_ids", Shape{1, 12}});
  EXPECT_EQ(match(options, file).report(), "");
}

TEST(TextEncoderKeysTest, WholeClipFilesFit) {
  const auto options = read(clip());
  auto file = file_of(options);
  for (const char* name : {"vision_model.embeddings.class_embedding", "visual_projection.weight",
                           "text_projection.weight", "logit_scale"})
    file.push_back({name, Shape{3}});
  EXPECT_EQ(match(options, file).report(), "");
}

TEST(TextEncoderKeysTest, T5FilesWithADecoderFit) {
  const auto options = read(t5());
  auto file = file_of(options);
  file.push_back({"encoder.embed_tokens.weight", Shape{20, 8}});
  file.push_back({"decoder.embed_tokens.weight", Shape{20, 8}});
  file.push_back({"lm_head.weight", Shape{20, 8}});
  EXPECT_EQ(match(options, file).report(), "");
}

TEST(TextEncoderKeysTest, T5FilesWithTheTableInTheEncoderFit) {
  const auto options = read(t5());
  auto file = file_of(options);
  replace(file, "shared.weight", "encoder.embed_tokens.weight");
  EXPECT_EQ(match(options, file).key_of.at("shared.weight"), "encoder.embed_tokens.weight");
}

TEST(TextEncoderKeysTest, EachTensorThatIsMissingIsNamed) {
  for (const json& config : {bert(), clip(), t5()}) {
    const auto options = read(config);
    const auto whole = file_of(options);
    for (size_t i = 0; i < whole.size(); ++i) {
      auto file = whole;
      file.erase(file.begin() + static_cast<int64_t>(i));
      EXPECT_THAT(match(options, file).missing, ElementsAre(whole[i].name));
    }
  }
}

TEST(TextEncoderKeysTest, UnexpectedTensorsAreNamed) {
  for (const json& config : {bert(), clip(), t5()}) {
    const auto options = read(config);
    auto file = file_of(options);
    file.push_back({"encoder.lora.weight", Shape{2}});
    EXPECT_THAT(match(options, file).unexpected, ElementsAre("encoder.lora.weight"));
  }
}

TEST(TextEncoderKeysTest, WrongShapesAreNamed) {
  for (const json& config : {bert(), clip(), t5()}) {
    const auto options = read(config);
    auto file = file_of(options);
    file[0].shape = Shape{7, 7};
    EXPECT_THAT(match(options, file).wrong_shape,
                ElementsAre(HasSubstr(file[0].name + ": expected [20, 8], got [7, 7]")));
  }
}

class SentenceModulesTest : public testing::Test {
 protected:
  void write(const std::vector<std::string>& types, const std::string& pooling) const {
    json modules = json::array();
    for (const std::string& type : types)
      modules.push_back(
          {{"type", "sentence_transformers.models." + type}, {"path", type == "Transformer" ? "" : "1"}});
    io::write_atomic(dir_.path() / "modules.json", json_text(modules));
    std::filesystem::create_directories(dir_.path() / "1");
    io::write_atomic(dir_.path() / "1" / "config.json", pooling);
  }
  [[nodiscard]] std::string refusal() const {
    try {
      (void)read_sentence_modules(dir_.path());
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "";
  }
  test::TempDir dir_;
};

constexpr const char* kMean = R"({"word_embedding_dimension": 8, "pooling_mode_mean_tokens": true,
                                  "pooling_mode_cls_token": false})";

TEST_F(SentenceModulesTest, OtherFoldersHaveNone) {
  EXPECT_FALSE(read_sentence_modules(dir_.path()).has_value());
}

TEST_F(SentenceModulesTest, ReadsMeanAndLength) {
  write({"Transformer", "Pooling", "Normalize"}, kMean);
  io::write_atomic(dir_.path() / "sentence_bert_config.json", R"({"max_seq_length": 256})");
  const auto options = read_sentence_modules(dir_.path());
  ASSERT_TRUE(options.has_value());
  EXPECT_EQ(options->pooling, SentenceOptions::Pooling::kMean);
  EXPECT_TRUE(options->normalise);
  EXPECT_EQ(options->max_tokens, 256);
}

TEST_F(SentenceModulesTest, ReadsTheFirstTokenWithoutLength) {
  write({"Transformer", "Pooling"}, R"({"pooling_mode_cls_token": true})");
  const auto options = read_sentence_modules(dir_.path());
  ASSERT_TRUE(options.has_value());
  EXPECT_EQ(options->pooling, SentenceOptions::Pooling::kFirst);
  EXPECT_FALSE(options->normalise);
  EXPECT_EQ(options->max_tokens, 0);
}

TEST_F(SentenceModulesTest, NamesOtherModules) {
  write({"Transformer", "Pooling", "Dense"}, kMean);
  EXPECT_THAT(refusal(), HasSubstr("modules.json: type: expected a Transformer, Pooling, and nothing or "
                                   "Normalize, got \"sentence_transformers.models.Dense\""));
}

TEST_F(SentenceModulesTest, NamesOtherPooling) {
  write({"Transformer", "Pooling"}, R"({"pooling_mode_max_tokens": true})");
  EXPECT_THAT(refusal(), HasSubstr("pooling_mode_max_tokens: expected the mean of the tokens"));
}

TEST_F(SentenceModulesTest, TwoWaysOfPoolingAreRefused) {
  write({"Transformer", "Pooling"}, R"({"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": true})");
  EXPECT_THAT(refusal(), HasSubstr("expected one way of pooling"));
}

TEST_F(SentenceModulesTest, PoolingMustBeThere) {
  write({"Transformer"}, kMean);
  EXPECT_THAT(refusal(), HasSubstr("modules: expected a Transformer and Pooling"));
}

}  // namespace
}  // namespace chiliad::weights
