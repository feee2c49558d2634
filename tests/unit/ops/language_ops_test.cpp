#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "chiliad/base/error.h"
#include "chiliad/ops/backward.h"
#include "chiliad/ops/linear_cross_entropy.h"
#include "chiliad/ops/rms_norm.h"
#include "chiliad/ops/rotary.h"
#include "chiliad/ops/swiglu.h"
#include "chiliad/ops/varlen_attention.h"

namespace chiliad::ops {
namespace {

at::Tensor wave(const std::vector<int64_t>& sizes, double frequency) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return at::sin(at::arange(count, at::kDouble) * frequency + 0.1).view(sizes);
}

at::Tensor leaf(const std::vector<int64_t>& sizes, double frequency) {
  return wave(sizes, frequency).set_requires_grad(true);
}

using Function = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

/// Values and gradients (under an uneven functional) of `actual` are those of `expected`.
void expect_equal(const Function& actual, const Function& expected, const std::vector<at::Tensor>& inputs) {
  const auto run = [&](const Function& function, std::vector<at::Tensor>& gradients) {
    std::vector<at::Tensor> leaves;
    for (const auto& input : inputs) leaves.push_back(input.detach().clone().set_requires_grad(true));
    const at::Tensor out = function(leaves);
    const at::Tensor weights = at::cos(at::arange(out.numel(), at::kDouble) * 1.7).view(out.sizes());
    backward({(out * weights).sum()});
    for (const auto& tensor : leaves) gradients.push_back(tensor.grad());
    return out.detach();
  };
  std::vector<at::Tensor> actual_gradients;
  std::vector<at::Tensor> expected_gradients;
  EXPECT_TRUE(at::allclose(run(actual, actual_gradients), run(expected, expected_gradients), 1e-10, 1e-12));
  for (size_t i = 0; i < inputs.size(); ++i) {
    ASSERT_TRUE(actual_gradients[i].defined()) << "input " << i;
    EXPECT_TRUE(at::allclose(actual_gradients[i], expected_gradients[i], 1e-9, 1e-11)) << "input " << i;
  }
}

TEST(RmsNormTest, IsTheFormula) {
  expect_equal([](const auto& in) { return rms_norm(in[0], in[1], 1e-3); },
               [](const auto& in) { return in[0] / (in[0].square().mean({-1}, true) + 1e-3).sqrt() * in[1]; },
               {wave({1, 7, 11}, 0.7), wave({11}, 0.3)});
}

TEST(RmsNormTest, TakesNoRows) {
  EXPECT_EQ(rms_norm(wave({1, 0, 4}, 1.0), wave({4}, 1.0), 1e-5).size(1), 0);
}

TEST(RmsNormTest, LowPrecisionIsNormedInFp32) {
  const at::Tensor x = wave({3, 64}, 0.9).to(at::kBFloat16);
  const at::Tensor weight = wave({64}, 0.5).to(at::kBFloat16);
  const at::Tensor wide = x.to(at::kFloat);
  const at::Tensor expected =
      (wide * (wide.square().mean({-1}, true) + 1e-5).rsqrt()).to(at::kBFloat16) * weight;
  EXPECT_TRUE(at::equal(rms_norm(x, weight, 1e-5), expected));
}

TEST(SwigluTest, IsSiluTimesUp) {
  expect_equal([](const auto& in) { return swiglu(in[0], in[1]); },
               [](const auto& in) { return in[0] * at::sigmoid(in[0]) * in[1]; },
               {wave({5, 7}, 0.7) * 3, wave({5, 7}, 1.3)});
}

TEST(RotaryTest, TurnsPairsOfTheTwoHalves) {
  const auto [cos, sin] = rotary_tables({.head_size = 6}, std::vector<int64_t>{2, 3});
  expect_equal([&](const auto& in) { return rotate(in[0], cos, sin); },
               [&](const auto& in) {
                 const at::Tensor c = cos.to(at::kDouble).unsqueeze(1);
                 const at::Tensor s = sin.to(at::kDouble).unsqueeze(1);
                 const auto halves = in[0].chunk(2, -1);
                 return at::cat({halves[0] * c - halves[1] * s, halves[1] * c + halves[0] * s}, -1);
               },
               {wave({5, 3, 6}, 0.7)});
}

TEST(RotaryTest, PositionZeroTurnsNothing) {
  const auto [cos, sin] = rotary_tables({.head_size = 8}, std::vector<int64_t>{1});
  const at::Tensor x = wave({1, 2, 8}, 0.7);
  EXPECT_TRUE(at::equal(rotate(x, cos, sin), x));
}

TEST(RotaryTest, FrequenciesFallFromOneByTheta) {
  const at::Tensor frequencies = rotary_frequencies({.head_size = 8, .theta = 10000.0});
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(frequencies[i].item<double>(), std::pow(10000.0, -static_cast<double>(2 * i) / 8), 1e-7);
  }
}

TEST(RotaryTest, LinearScalingDividesAll) {
  RotaryOptions options{.head_size = 8};
  const at::Tensor plain = rotary_frequencies(options);
  options.scaling = RotaryScaling::kLinear;
  options.factor = 4.0;
  EXPECT_TRUE(at::equal(rotary_frequencies(options), plain / 4.0));
}

/// Both scalings that look at the context keep the fast pairs and divide the slow ones.
class RotaryStretch : public testing::TestWithParam<RotaryScaling> {};

TEST_P(RotaryStretch, KeepsFastPairsAndDividesSlowOnes) {
  RotaryOptions options{.head_size = 64};
  const at::Tensor plain = rotary_frequencies(options);
  options.scaling = GetParam();
  options.factor = 8.0;
  options.original_context = 8192;
  const at::Tensor ratio = plain / rotary_frequencies(options);
  EXPECT_FLOAT_EQ(ratio[0].item<float>(), 1.0F);
  EXPECT_FLOAT_EQ(ratio[31].item<float>(), 8.0F);
  EXPECT_TRUE(ratio.diff().ge(-1e-4).all().item<bool>());
  EXPECT_TRUE(ratio.gt(1.01).logical_and(ratio.lt(7.9)).any().item<bool>());
}

INSTANTIATE_TEST_SUITE_P(Scalings, RotaryStretch,
                         testing::Values(RotaryScaling::kLlama3, RotaryScaling::kYarn));

// Values of transformers 5.24, _compute_dynamic_ntk_parameters(seq_len): theta 10000, head size 8, factor 2,
// 16 positions.
TEST(RotaryTest, DynamicScalingGrowsWithTheDocumentAlone) {
  const RotaryOptions options{
      .head_size = 8, .scaling = RotaryScaling::kDynamic, .factor = 2.0, .original_context = 16};
  const at::Tensor plain = rotary_frequencies({.head_size = 8});
  EXPECT_TRUE(at::equal(rotary_frequencies(options, 16), plain));
  const at::Tensor expected = at::tensor({1.0F, 0.0629960522F, 0.00396850286F, 0.000250000012F});
  EXPECT_TRUE(at::allclose(rotary_frequencies(options, 40), expected, 1e-6, 0.0));
  const auto packed = rotary_tables(options, std::vector<int64_t>{5, 40});
  const auto alone = rotary_tables(options, std::vector<int64_t>{40});
  EXPECT_TRUE(at::equal(packed.first.narrow(0, 5, 40), alone.first));
}

TEST(RotaryTest, YarnEnlargesTheTables) {
  RotaryOptions options{
      .head_size = 8, .scaling = RotaryScaling::kYarn, .factor = 4.0, .original_context = 16};
  const std::vector<int64_t> start{1};
  EXPECT_FLOAT_EQ(rotary_tables(options, start).first[0][0].item<float>(),
                  static_cast<float>(0.1 * std::log(4.0) + 1.0));
  options.attention_factor = 1.5;
  EXPECT_FLOAT_EQ(rotary_tables(options, start).first[0][0].item<float>(), 1.5F);
}

at::Tensor ends_of(const std::vector<int64_t>& lengths) {
  at::Tensor ends = at::zeros({static_cast<int64_t>(lengths.size()) + 1}, at::kLong);
  auto* data = ends.mutable_data_ptr<int64_t>();
  for (size_t i = 0; i < lengths.size(); ++i) data[i + 1] = data[i] + lengths[i];
  return ends;
}

/// softmax over all pairs of the pack under a mask of equal document and earlier key, head by head.
at::Tensor plain_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const std::vector<int64_t>& lengths) {
  std::vector<at::Tensor> numbers;
  for (size_t i = 0; i < lengths.size(); ++i)
    numbers.push_back(at::full({lengths[i]}, static_cast<int64_t>(i), at::kLong));
  const at::Tensor document = at::cat(numbers);
  const at::Tensor order = at::arange(q.size(0), at::kLong);
  const at::Tensor allowed =
      document.unsqueeze(1).eq(document.unsqueeze(0)).logical_and(order.unsqueeze(1).ge(order.unsqueeze(0)));
  std::vector<at::Tensor> heads;
  for (int64_t head = 0; head < q.size(1); ++head) {
    const int64_t key_head = head / (q.size(1) / k.size(1));
    const at::Tensor scores =
        q.select(1, head).mm(k.select(1, key_head).t()) / std::sqrt(static_cast<double>(q.size(2)));
    const at::Tensor masked =
        scores.masked_fill(allowed.logical_not(), -std::numeric_limits<double>::infinity());
    heads.push_back(at::softmax(masked, 1).mm(v.select(1, key_head)));
  }
  return at::stack(heads, 1);
}

class VarlenAttention : public testing::TestWithParam<std::vector<int64_t>> {};

TEST_P(VarlenAttention, IsCausalInsideEachDocument) {
  const auto& lengths = GetParam();
  const at::Tensor ends = ends_of(lengths);
  const int64_t tokens = ends[-1].item<int64_t>();
  expect_equal([&](const auto& in) { return varlen_attention(in[0], in[1], in[2], ends); },
               [&](const auto& in) { return plain_attention(in[0], in[1], in[2], lengths); },
               {wave({tokens, 6, 4}, 0.7), wave({tokens, 2, 4}, 1.1), wave({tokens, 2, 4}, 1.9)});
}

INSTANTIATE_TEST_SUITE_P(Packs, VarlenAttention,
                         testing::Values(std::vector<int64_t>{1}, std::vector<int64_t>{13},
                                         std::vector<int64_t>{1, 1, 1},
                                         std::vector<int64_t>{7, 1, 0, 11, 3}));

TEST(VarlenAttentionTest, APackIsItsDocuments) {
  const at::Tensor q = wave({12, 4, 6}, 0.7);
  const at::Tensor k = wave({12, 2, 6}, 1.1);
  const at::Tensor v = wave({12, 2, 6}, 1.9);
  const at::Tensor packed = varlen_attention(q, k, v, ends_of({5, 7}));
  const auto alone = [&](int64_t begin, int64_t length) {
    return varlen_attention(q.narrow(0, begin, length), k.narrow(0, begin, length),
                            v.narrow(0, begin, length), ends_of({length}));
  };
  EXPECT_TRUE(at::equal(packed, at::cat({alone(0, 5), alone(5, 7)})));
}

TEST(VarlenAttentionTest, TakesShortOffsets) {
  const at::Tensor x = wave({5, 2, 4}, 0.7);
  EXPECT_TRUE(at::equal(varlen_attention(x, x, x, ends_of({2, 3}).to(at::kInt)),
                        varlen_attention(x, x, x, ends_of({2, 3}))));
}

TEST(VarlenAttentionTest, RefusesOffsetsOfAnotherPack) {
  EXPECT_THROW((void)document_lengths(ends_of({2, 3}), 6), InternalError);
  EXPECT_THROW((void)document_lengths(at::flip(ends_of({2, 3}), {0}), 5), InternalError);
}

/// The loss with all logits at once.
at::Tensor plain_loss(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& targets,
                      const at::Tensor& token_weights) {
  const at::Tensor logs = at::log_softmax(hidden.mm(weight.t()), 1);
  const at::Tensor row = targets.clamp_min(0).unsqueeze(1);
  const at::Tensor losses = -logs.gather(1, row).squeeze(1) * targets.ne(kIgnoredTarget);
  return (losses * token_weights).sum();
}

struct LossCase {
  int64_t tokens;
  int64_t chunk;
};

class LinearCrossEntropy : public testing::TestWithParam<LossCase> {
 protected:
  at::Tensor targets() const {
    at::Tensor made = (at::arange(GetParam().tokens, at::kLong) * 7 + 2) % 17;
    if (GetParam().tokens > 2) made.narrow(0, 1, 2).fill_(kIgnoredTarget);
    return made;
  }
  at::Tensor weights() const { return wave({GetParam().tokens}, 0.4) + 1.5; }
};

TEST_P(LinearCrossEntropy, IsTheLossOfAllLogits) {
  expect_equal(
      [&](const auto& in) {
        return linear_cross_entropy(in[0], in[1], targets(), weights(), GetParam().chunk).loss;
      },
      [&](const auto& in) { return plain_loss(in[0], in[1], targets(), weights()); },
      {wave({GetParam().tokens, 5}, 0.7) * 3, wave({17, 5}, 1.3)});
}

INSTANTIATE_TEST_SUITE_P(Chunks, LinearCrossEntropy,
                         testing::Values(LossCase{1, 4}, LossCase{13, 1}, LossCase{13, 4}, LossCase{13, 13},
                                         LossCase{13, 100}),
                         [](const auto& test) {
                           return std::to_string(test.param.tokens) + "TokensBy" +
                                  std::to_string(test.param.chunk);
                         });

TEST(LinearCrossEntropyTest, BackwardScalesByTheUpstreamGradient) {
  const at::Tensor targets = at::arange(4, at::kLong);
  const at::Tensor ones = at::ones({4}, at::kDouble);
  expect_equal(
      [&](const auto& in) { return linear_cross_entropy(in[0], in[1], targets, ones, 3).loss.square(); },
      [&](const auto& in) { return plain_loss(in[0], in[1], targets, ones).square(); },
      {wave({4, 5}, 0.7), wave({6, 5}, 1.3)});
}

TEST(LinearCrossEntropyTest, TokenLossesAreUnweightedAndZeroWhereIgnored) {
  const at::Tensor hidden = leaf({3, 5}, 0.7);
  const at::Tensor weight = leaf({6, 5}, 1.3);
  at::Tensor targets = at::arange(3, at::kLong);
  targets.narrow(0, 1, 1).fill_(kIgnoredTarget);
  const auto losses = linear_cross_entropy(hidden, weight, targets, at::full({3}, 2.0, at::kDouble), 2);
  const at::Tensor logs = at::log_softmax(hidden.mm(weight.t()), 1).detach();
  EXPECT_NEAR(losses.tokens[0].item<double>(), -logs[0][0].item<double>(), 1e-12);
  EXPECT_EQ(losses.tokens[1].item<double>(), 0.0);
  EXPECT_NEAR(losses.tokens[2].item<double>(), -logs[2][2].item<double>(), 1e-12);
  EXPECT_FALSE(losses.tokens.requires_grad());
}

TEST(LinearCrossEntropyTest, NothingSupervisedIsZeroAndNotNan) {
  const at::Tensor hidden = leaf({3, 5}, 0.7);
  const at::Tensor weight = leaf({6, 5}, 1.3);
  const auto losses = linear_cross_entropy(hidden, weight, at::full({3}, kIgnoredTarget, at::kLong),
                                           at::ones({3}, at::kDouble), 2);
  backward({losses.loss});
  EXPECT_EQ(losses.loss.item<double>(), 0.0);
  EXPECT_EQ(hidden.grad().abs().max().item<double>(), 0.0);
  EXPECT_EQ(weight.grad().abs().max().item<double>(), 0.0);
}

TEST(LinearCrossEntropyTest, LargeLogitsStayFinite) {
  const at::Tensor hidden = wave({2, 4}, 0.7).to(at::kFloat) * 1e4;
  const at::Tensor weight = wave({6, 4}, 1.3).to(at::kFloat) * 1e2;
  const auto losses =
      linear_cross_entropy(hidden, weight, at::arange(2, at::kLong), at::ones({2}, at::kFloat), 2);
  EXPECT_TRUE(std::isfinite(losses.loss.item<double>()));
}

TEST(LinearCrossEntropyTest, AFrozenTableGetsNoGradient) {
  const at::Tensor hidden = leaf({3, 5}, 0.7);
  const at::Tensor weight = wave({6, 5}, 1.3);
  const auto losses =
      linear_cross_entropy(hidden, weight, at::arange(3, at::kLong), at::ones({3}, at::kDouble), 2);
  backward({losses.loss});
  EXPECT_TRUE(hidden.grad().defined());
  EXPECT_FALSE(weight.grad().defined());
}

TEST(LinearCrossEntropyTest, LowPrecisionKeepsAnFp32Loss) {
  const at::Tensor hidden = wave({3, 5}, 0.7).to(at::kBFloat16).set_requires_grad(true);
  const at::Tensor weight = wave({6, 5}, 1.3).to(at::kBFloat16).set_requires_grad(true);
  const auto losses =
      linear_cross_entropy(hidden, weight, at::arange(3, at::kLong), at::ones({3}, at::kFloat), 2);
  backward({losses.loss});
  EXPECT_EQ(losses.loss.scalar_type(), at::kFloat);
  EXPECT_EQ(weight.grad().scalar_type(), at::kBFloat16);
}

}  // namespace
}  // namespace chiliad::ops
