// The operators that have kernels of their own, values and gradients against the same made of ATen's in fp64.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "chiliad/device/tensor.h"
#include "chiliad/ops/attention.h"
#include "chiliad/ops/axis_rotary.h"
#include "chiliad/ops/backward.h"
#include "chiliad/ops/cpu/parallel.h"
#include "chiliad/ops/keyed_noise.h"
#include "chiliad/ops/linear.h"
#include "chiliad/ops/modulation.h"
#include "chiliad/ops/rms_norm.h"

namespace chiliad::ops {
namespace {

// Before the first operator looks at it: on every machine with the kernels, both types are tried.
[[maybe_unused]] const bool kBothTypes = ::setenv("CHILIAD_FP32_KERNELS", "1", 1) == 0;

using Tensors = std::vector<at::Tensor>;
using Op = std::function<Tensors(const Tensors&)>;

/// Normal values; `draw` picks which.
at::Tensor values(const std::vector<int64_t>& sizes, uint64_t draw) {
  const std::vector<uint64_t> keys = {draw};
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return keyed_noise(keys, Draw::kLatent, count).view(sizes).to(at::kDouble);
}

/// Results, then the gradients of all inputs.
Tensors run(const Op& op, const Tensors& inputs, at::ScalarType type, at::ScalarType rounded) {
  Tensors leaves;
  for (const auto& input : inputs) leaves.push_back(input.to(type).clone().set_requires_grad(true));
  Tensors results = op(leaves);
  Tensors upstream;
  for (size_t i = 0; i < results.size(); ++i)
    upstream.push_back(values(results[i].sizes().vec(), 90 + i).to(rounded).to(type));
  backward(results, upstream);
  for (const auto& leaf : leaves) results.push_back(leaf.grad());
  return results;
}

double relative(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor wide = b.to(at::kDouble);
  return (a.to(at::kDouble) - wide).norm().item<double>() / (wide.norm().item<double>() + 1e-30);
}

/// fp32 and bf16 against fp64 of the same (rounded) inputs; twice the same bits, with one thread and two.
void expect_exact(const Op& fused, const Op& reference, const Tensors& inputs) {
  for (const auto& [type, tolerance] : {std::pair{at::kFloat, 2e-6}, std::pair{at::kBFloat16, 6e-3}}) {
    Tensors rounded;
    for (const auto& input : inputs) rounded.push_back(input.to(type).to(at::kDouble));
    const Tensors expected = run(reference, rounded, at::kDouble, type);
    const Tensors got = run(fused, inputs, type, type);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_LT(relative(got[i], expected[i]), tolerance) << type << i;
    device::set_compute_threads(2);
    const Tensors again = run(fused, inputs, type, type);
    device::set_compute_threads(1);
    for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(at::equal(got[i], again[i])) << type << i;
  }
}

class FusedOpsTest : public testing::Test {
 protected:
  FusedOpsTest() { device::set_compute_threads(1); }
  void SetUp() override {
    if (!cpu::has_kernels()) GTEST_SKIP() << "this processor has no AVX-512";
  }
};

LinearParams params_of(const Tensors& all, size_t weight) {
  return {all[weight], all.size() > weight + 1 ? all[weight + 1] : at::Tensor()};
}

// Sizes below, at and above the edges of tiles (12 x 32), blocks (96, 384) and panels.
using Sizes = std::vector<int64_t>;  // rows, in, out
class FusedLinearTest : public FusedOpsTest, public testing::WithParamInterface<Sizes> {
 protected:
  [[nodiscard]] at::Tensor x() const { return values({2, GetParam()[0] / 2, GetParam()[1]}, 1); }
  [[nodiscard]] at::Tensor weight(uint64_t draw = 51) const {
    return values({GetParam()[2], GetParam()[1]}, draw);
  }
  [[nodiscard]] at::Tensor bias(uint64_t draw = 61) const { return values({GetParam()[2]}, draw); }
};

TEST_P(FusedLinearTest, LinearMatches) {
  expect_exact([](const Tensors& in) { return Tensors{linear(in[0], params_of(in, 1))}; },
               [](const Tensors& in) { return Tensors{plain::linear(in[0], params_of(in, 1))}; },
               {x(), weight(), bias()});
}

TEST_P(FusedLinearTest, LinearWithoutBiasMatches) {
  expect_exact([](const Tensors& in) { return Tensors{linear(in[0], params_of(in, 1))}; },
               [](const Tensors& in) { return Tensors{plain::linear(in[0], params_of(in, 1))}; },
               {x(), weight()});
}

TEST_P(FusedLinearTest, GeluLinearMatches) {
  expect_exact([](const Tensors& in) { return Tensors{gelu_linear(in[0], params_of(in, 1))}; },
               [](const Tensors& in) { return Tensors{plain::gelu_linear(in[0], params_of(in, 1))}; },
               {x() * 3.0, weight(), bias()});
}

TEST_P(FusedLinearTest, NormModulateLinearsMatch) {
  const auto op = [](const auto& made) {
    return [made](const Tensors& in) {
      return made(in[0], in[1], in[2], 1e-5, std::vector<LinearParams>{{in[3], in[4]}, {in[5], in[6]}});
    };
  };
  const int64_t width = GetParam()[1];
  expect_exact(op([](const auto&... a) { return norm_modulate_linears(a...); }),
               op([](const auto&... a) { return plain::norm_modulate_linears(a...); }),
               {x() + 0.4, values({2, 1, width}, 2), values({2, 1, width}, 3), weight(), bias(), weight(52),
                bias(62)});
}

INSTANTIATE_TEST_SUITE_P(Sizes, FusedLinearTest,
                         testing::Values(Sizes{48, 16, 32}, Sizes{98, 20, 33}, Sizes{194, 385, 7},
                                         Sizes{64, 37, 97}, Sizes{100, 96, 2100}));

// In fp64, which the kernels do not take, the operators are made of ATen's: each is its own reference.
void expect_as_in_fp64(const Op& op, const Tensors& inputs) {
  expect_exact(op, op, inputs);
}

TEST_F(FusedOpsTest, NormModulateMatches) {
  expect_as_in_fp64([](const Tensors& in) { return Tensors{norm_modulate(in[0], in[1], in[2])}; },
                    {values({3, 37, 21}, 4) + 0.3, values({3, 1, 21}, 5), values({3, 1, 21}, 6)});
}

TEST_F(FusedOpsTest, NormModulateOfAPackMatches) {
  expect_as_in_fp64(
      [](const Tensors& in) {
        return Tensors{norm_modulate(in[0], in[1], in[2], 1e-6, {5, 1, 31})};
      },
      {values({1, 37, 21}, 4) + 0.3, values({3, 1, 21}, 5), values({3, 1, 21}, 6)});
}

TEST_F(FusedOpsTest, GeluMatches) {
  for (const int64_t count : {1, 15, 7000}) {
    expect_as_in_fp64([](const Tensors& in) { return Tensors{ops::gelu(in[0])}; },
                      {values({2, 5, count}, 4) * 3.0});
  }
}

TEST_F(FusedOpsTest, GeluOfAPartMatches) {
  expect_as_in_fp64(
      [](const Tensors& in) {
        return Tensors{at::cat({in[1], ops::gelu(in[0])}, 2)};
      },
      {values({2, 5, 37}, 4) * 3.0, values({2, 5, 11}, 5)});
}

TEST_F(FusedOpsTest, RmsNormMatches) {
  for (const int64_t rows : {1, 40, 700}) {
    expect_as_in_fp64([](const Tensors& in) { return Tensors{rms_norm(in[0], in[1], 1e-6)}; },
                      {values({rows, 2, 21}, 4), values({21}, 5)});
  }
}

TEST_F(FusedOpsTest, RotatePairsMatches) {
  const at::Tensor angles = values({7, 5}, 8);
  const at::Tensor cos = at::cos(angles).to(at::kFloat);
  const at::Tensor sin = at::sin(angles).to(at::kFloat);
  expect_as_in_fp64([&](const Tensors& in) { return Tensors{rotate_pairs(in[0], cos, sin)}; },
                    {values({2, 7, 30}, 4)});
}

TEST_F(FusedOpsTest, GatedResidualMatches) {
  expect_exact([](const Tensors& in) { return Tensors{gated_residual(in[0], in[1], in[2])}; },
               [](const Tensors& in) { return Tensors{plain::gated_residual(in[0], in[1], in[2])}; },
               {values({3, 37, 21}, 4), values({3, 1, 21}, 5), values({3, 37, 21}, 6)});
}

/// Rows of the items of a pack; together 111.
const std::vector<int64_t>& pack_lengths() {
  static const std::vector<int64_t> kLengths{1, 70, 7, 33};
  return kLengths;
}

TEST_F(FusedOpsTest, NormModulateLinearsOfAPackMatch) {
  const auto op = [](const auto& made) {
    return [made](const Tensors& in) {
      return made(in[0], in[1], in[2], 1e-5, std::vector<LinearParams>{{in[3], in[4]}}, pack_lengths());
    };
  };
  expect_exact(op([](const auto&... a) { return norm_modulate_linears(a...); }),
               op([](const auto&... a) { return plain::norm_modulate_linears(a...); }),
               {values({1, 111, 37}, 1) + 0.4, values({4, 1, 37}, 2), values({4, 1, 37}, 3),
                values({33, 37}, 51), values({33}, 61)});
}

TEST_F(FusedOpsTest, GatedResidualOfAPackMatches) {
  expect_exact(
      [](const Tensors& in) { return Tensors{gated_residual(in[0], in[1], in[2], pack_lengths())}; },
      [](const Tensors& in) { return Tensors{plain::gated_residual(in[0], in[1], in[2], pack_lengths())}; },
      {values({1, 111, 21}, 4), values({4, 1, 21}, 5), values({1, 111, 21}, 6)});
}

TEST_F(FusedOpsTest, ChunksOfOneProductAreTaken) {
  const Op chunked = [](const Tensors& in) {
    const auto parts = in[0].chunk(3, -1);
    return Tensors{attention(parts[0], parts[1], parts[2], 2, {})};
  };
  const Op reference = [](const Tensors& in) {
    const auto parts = in[0].chunk(3, -1);
    return Tensors{plain::attention(parts[0], parts[1], parts[2], 2, {})};
  };
  expect_exact(chunked, reference, {values({2, 33, 96}, 7)});
}

// items, queries, keys, heads, head size
class FusedAttentionTest : public FusedOpsTest, public testing::WithParamInterface<Sizes> {
 protected:
  [[nodiscard]] Tensors inputs() const {
    const auto& s = GetParam();
    return {values({s[0], s[1], s[3] * s[4]}, 8) * 2.0, values({s[0], s[2], s[3] * s[4]}, 9),
            values({s[0], s[2], s[3] * s[4]}, 10)};
  }
};

TEST_P(FusedAttentionTest, FullMatches) {
  const int64_t heads = GetParam()[3];
  expect_exact(
      [heads](const Tensors& in) { return Tensors{attention(in[0], in[1], in[2], heads, {})}; },
      [heads](const Tensors& in) { return Tensors{plain::attention(in[0], in[1], in[2], heads, {})}; },
      inputs());
}

TEST_P(FusedAttentionTest, MaskedKeysHaveNoEffect) {
  const int64_t heads = GetParam()[3];
  at::Tensor mask = at::sin(at::arange(GetParam()[0] * GetParam()[2]) * 1.7) > -0.5;
  mask = mask.view({GetParam()[0], GetParam()[2]}).contiguous();
  mask.select(1, 0).fill_(true);
  expect_exact([=](const Tensors& in) { return Tensors{attention(in[0], in[1], in[2], heads, mask)}; },
               [=](const Tensors& in) { return Tensors{plain::attention(in[0], in[1], in[2], heads, mask)}; },
               inputs());
}

INSTANTIATE_TEST_SUITE_P(Sizes, FusedAttentionTest,
                         testing::Values(Sizes{2, 5, 3, 2, 8}, Sizes{1, 130, 300, 2, 64},
                                         Sizes{2, 128, 77, 1, 72}, Sizes{1, 261, 529, 1, 40}));

TEST_F(FusedOpsTest, ItemsOfAPackSeeThemselvesAlone) {
  const std::vector<int64_t> queries = {40, 0, 131, 1};
  const std::vector<int64_t> keys = {17, 0, 260, 5};
  expect_exact(
      [&](const Tensors& in) { return Tensors{packed_attention(in[0], in[1], in[2], 2, queries, keys)}; },
      [&](const Tensors& in) {
        return Tensors{plain::packed_attention(in[0], in[1], in[2], 2, queries, keys)};
      },
      {values({172, 32}, 11), values({282, 32}, 12), values({282, 32}, 13)});
}

TEST_F(FusedOpsTest, LargeScoresStayFinite) {
  const at::Tensor q = values({1, 20, 32}, 14).to(at::kFloat) * 1e3;
  const at::Tensor out = attention(q, q, q, 1, {});
  EXPECT_LT(relative(out, plain::attention(q.to(at::kDouble), q.to(at::kDouble), q.to(at::kDouble), 1, {})),
            1e-5);
}

TEST_F(FusedOpsTest, GeluAtTheEnds) {
  const at::Tensor x =
      at::tensor(std::vector<float>{-1e4F, -20.0F, -6.0F, 0.0F, 6.0F, 20.0F, 1e4F}).repeat({48, 1});
  const LinearParams one{at::eye(7), {}};
  EXPECT_TRUE(at::allclose(gelu_linear(x, one), at::gelu(x, "tanh"), 1e-5, 1e-7));
}

}  // namespace
}  // namespace chiliad::ops
