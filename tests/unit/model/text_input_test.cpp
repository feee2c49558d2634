#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "chiliad/base/error.h"
#include "chiliad/model/language_model.h"

namespace chiliad::model {
namespace {

spec::ModelOptions options() {
  spec::ModelOptions made;
  made.family = "llama";
  made.width = 16;
  made.heads = 2;
  made.mlp_width = 24;
  made.vocabulary = 32;
  return made;
}

/// Five tokens: documents of 3 and 2.
TextBatch batch() {
  TextBatch made;
  made.tokens = at::arange(5, at::kLong);
  made.cu_seqlens = at::zeros({3}, at::kLong);
  made.cu_seqlens[1] = 3;
  made.cu_seqlens[2] = 5;
  made.targets = at::arange(5, at::kLong) + 1;
  made.token_weights = at::ones({5}, at::kFloat);
  return made;
}

TEST(MakeTextInputTest, PositionsRestartAtEachDocument) {
  const auto carry = make_text_input(options(), batch());
  EXPECT_TRUE(at::equal(carry.get("positions"), at::arange(5, at::kLong) % 3));
}

TEST(MakeTextInputTest, TablesFollowThePositions) {
  const auto carry = make_text_input(options(), batch());
  const at::Tensor& sines = carry.get("rope_sin");
  EXPECT_EQ(sines.sizes().vec(), (std::vector<int64_t>{5, 4}));
  EXPECT_TRUE(at::equal(sines[3], sines[0]));
  EXPECT_FLOAT_EQ(sines[4][0].item<float>(), std::sin(1.0F));
}

TEST(MakeTextInputTest, WithoutTargetsThereAreNone) {
  TextBatch made = batch();
  made.targets.reset();
  EXPECT_FALSE(make_text_input(options(), made).has("targets"));
}

TEST(MakeTextInputTest, RefusesOffsetsOfAnotherPack) {
  TextBatch made = batch();
  made.tokens = at::arange(6, at::kLong);
  EXPECT_THROW((void)make_text_input(options(), made), InternalError);
}

}  // namespace
}  // namespace chiliad::model
