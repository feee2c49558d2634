// The operators that have kernels for GPUs, values and gradients against ATen's in fp64 on the same GPU; the
// same bits twice. Tests skip where no GPU is.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "chiliad/ops/adamw.h"
#include "chiliad/ops/attention.h"
#include "chiliad/ops/axis_rotary.h"
#include "chiliad/ops/backward.h"
#include "chiliad/ops/cuda/adamw.h"
#include "chiliad/ops/cuda/flash_attention.h"
#include "chiliad/ops/cuda/values.h"
#include "chiliad/ops/keyed_noise.h"
#include "chiliad/ops/modulation.h"
#include "chiliad/ops/rms_norm.h"

namespace chiliad::ops {
namespace {

using Tensors = std::vector<at::Tensor>;
using Op = std::function<Tensors(const Tensors&)>;
using Lengths = std::vector<int64_t>;

/// Normal values on the GPU; `draw` picks which.
at::Tensor values(const std::vector<int64_t>& sizes, uint64_t draw) {
  const std::vector<uint64_t> keys = {draw};
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return keyed_noise(keys, Draw::kLatent, count).view(sizes).to(at::kDouble).to(at::kCUDA);
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

struct Precision {
  at::ScalarType type;
  double tolerance;
};
const std::vector<Precision>& all_types() {
  static const std::vector<Precision> kTypes{{at::kFloat, 2e-6}, {at::kBFloat16, 6e-3}, {at::kHalf, 1e-3}};
  return kTypes;
}

/// Against fp64 of the same (rounded) inputs; twice the same bits.
void expect_exact(const Op& fused, const Op& reference, const Tensors& inputs,
                  const std::vector<Precision>& types = all_types()) {
  for (const auto& [type, tolerance] : types) {
    Tensors rounded;
    for (const auto& input : inputs) rounded.push_back(input.to(type).to(at::kDouble));
    const Tensors expected = run(reference, rounded, at::kDouble, type);
    const Tensors got = run(fused, inputs, type, type);
    const Tensors again = run(fused, inputs, type, type);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_LT(relative(got[i], expected[i]), tolerance) << type << i;
      EXPECT_TRUE(at::equal(got[i], again[i])) << type << i;
    }
  }
}

// In fp64, which the kernels do not take, the operators are made of ATen's: each is its own reference.
void expect_as_in_fp64(const Op& op, const Tensors& inputs) {
  expect_exact(op, op, inputs);
}

class GpuOpsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!at::hasCUDA() || at::getNumGPUs() == 0) GTEST_SKIP() << "this machine has no GPU";
    ASSERT_TRUE(cuda::takes_values({at::zeros({1}, at::kCUDA)}));
  }
};

// Below, at and above warps and blocks, primes, and a wide row.
class GpuWidthsTest : public GpuOpsTest, public testing::WithParamInterface<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Widths, GpuWidthsTest, testing::Values(31, 32, 37, 257, 1152, 4096));

TEST_P(GpuWidthsTest, NormModulateMatches) {
  const int64_t width = GetParam();
  expect_as_in_fp64([](const Tensors& in) { return Tensors{norm_modulate(in[0], in[1], in[2], 1e-3)}; },
                    {values({3, 37, width}, 4) + 0.3, values({3, 1, width}, 5), values({3, 1, width}, 6)});
}

TEST_P(GpuWidthsTest, NormModulateOfAPackMatches) {
  const int64_t width = GetParam();
  expect_as_in_fp64(
      [](const Tensors& in) {
        return Tensors{norm_modulate(in[0], in[1], in[2], 1e-3, {5, 1, 131})};
      },
      {values({1, 137, width}, 4) + 0.3, values({3, 1, width}, 5), values({3, 1, width}, 6)});
}

TEST_P(GpuWidthsTest, GatedResidualMatches) {
  const int64_t width = GetParam();
  expect_exact([](const Tensors& in) { return Tensors{gated_residual(in[0], in[1], in[2])}; },
               [](const Tensors& in) { return Tensors{plain::gated_residual(in[0], in[1], in[2])}; },
               {values({3, 131, width}, 4), values({3, 1, width}, 5), values({3, 131, width}, 6)});
}

TEST_P(GpuWidthsTest, GeluMatches) {
  expect_as_in_fp64([](const Tensors& in) { return Tensors{ops::gelu(in[0])}; },
                    {values({2, 5, GetParam()}, 4) * 3.0});
}

TEST_P(GpuWidthsTest, RmsNormMatches) {
  for (const int64_t rows : {1, 127, 1031}) {
    expect_as_in_fp64([](const Tensors& in) { return Tensors{rms_norm(in[0], in[1], 1e-6)}; },
                      {values({rows, 2, GetParam()}, 4), values({GetParam()}, 5)});
  }
}

TEST_F(GpuOpsTest, RowsOfOneValueMatch) {
  expect_as_in_fp64([](const Tensors& in) { return Tensors{ops::gelu(in[0])}; }, {values({1, 1, 1}, 4)});
  expect_exact([](const Tensors& in) { return Tensors{gated_residual(in[0], in[1], in[2])}; },
               [](const Tensors& in) { return Tensors{plain::gated_residual(in[0], in[1], in[2])}; },
               {values({1, 1, 1}, 4), values({1, 1, 1}, 5), values({1, 1, 1}, 6)});
}

TEST_F(GpuOpsTest, ANormOfOneValueIsTheShift) {
  const at::Tensor shift = values({3, 1, 1}, 5).to(at::kFloat);
  const at::Tensor out = norm_modulate(values({3, 7, 1}, 4).to(at::kFloat), shift, shift);
  EXPECT_TRUE(at::equal(out, shift.expand({3, 7, 1})));
}

TEST_F(GpuOpsTest, SumsOverManyRowsMatch) {  // more than fit into parts of the least size
  expect_as_in_fp64([](const Tensors& in) { return Tensors{rms_norm(in[0], in[1], 1e-6)}; },
                    {values({1, 40001, 24}, 4), values({24}, 5)});
}

TEST_F(GpuOpsTest, GatedResidualOfAPackMatches) {
  const Lengths lengths{1, 70, 7, 333};
  expect_exact(
      [=](const Tensors& in) { return Tensors{gated_residual(in[0], in[1], in[2], lengths)}; },
      [=](const Tensors& in) { return Tensors{plain::gated_residual(in[0], in[1], in[2], lengths)}; },
      {values({1, 411, 21}, 4), values({4, 1, 21}, 5), values({1, 411, 21}, 6)});
}

TEST_F(GpuOpsTest, GeluOfAPartMatches) {  // rows of its gradient lie apart
  expect_as_in_fp64(
      [](const Tensors& in) {
        return Tensors{at::cat({in[1], ops::gelu(in[0])}, 2)};
      },
      {values({2, 5, 37}, 4) * 3.0, values({2, 5, 11}, 5)});
}

TEST_F(GpuOpsTest, RotatePairsMatches) {
  const at::Tensor angles = values({7, 5}, 8);
  const at::Tensor cos = at::cos(angles).to(at::kFloat);
  const at::Tensor sin = at::sin(angles).to(at::kFloat);
  expect_as_in_fp64([&](const Tensors& in) { return Tensors{rotate_pairs(in[0], cos, sin)}; },
                    {values({2, 7, 30}, 4)});
}

class GpuPacksTest : public GpuOpsTest, public testing::WithParamInterface<int64_t> {};
INSTANTIATE_TEST_SUITE_P(HeadSizes, GpuPacksTest, testing::Values(8, 64, 72, 128));

TEST_P(GpuPacksTest, PackedAttentionMatches) {
  constexpr int64_t kHeads = 3;
  const int64_t width = kHeads * GetParam();
  const Lengths queries{1, 130, 0, 67};
  const Lengths keys{3, 130, 5, 300};
  const auto op = [&](const auto& made) {
    return [&, made](const Tensors& in) { return Tensors{made(in[0], in[1], in[2], kHeads, queries, keys)}; };
  };
  const Tensors inputs{values({198, width}, 8), values({438, width}, 9), values({438, width}, 10)};
  const at::Tensor q = inputs[0].to(at::kBFloat16);
  ASSERT_TRUE(cuda::takes_packs(q, q, q, kHeads));
  expect_exact(op([](const auto&... a) { return packed_attention(a...); }),
               op([](const auto&... a) { return plain::packed_attention(a...); }), inputs,
               {{at::kBFloat16, 1.2e-2}, {at::kHalf, 2e-3}});
}

TEST_F(GpuOpsTest, ChunksOfOneProductAreTaken) {
  const Lengths lengths{20, 13};
  const auto op = [&](const auto& made) {
    return [&, made](const Tensors& in) {
      const auto parts = in[0].chunk(3, -1);
      return Tensors{made(parts[0], parts[1], parts[2], 2, lengths, lengths)};
    };
  };
  expect_exact(op([](const auto&... a) { return packed_attention(a...); }),
               op([](const auto&... a) { return plain::packed_attention(a...); }), {values({33, 96}, 7)},
               {{at::kBFloat16, 1.2e-2}, {at::kHalf, 2e-3}});
}

TEST_F(GpuOpsTest, PackedAttentionLeavesTheProcessAsItWas) {
  const bool before = at::globalContext().deterministicAlgorithms();
  const Lengths lengths{20, 13};
  (void)run(
      [&](const Tensors& in) { return Tensors{packed_attention(in[0], in[0], in[0], 2, lengths, lengths)}; },
      {values({33, 32}, 7)}, at::kBFloat16, at::kBFloat16);
  EXPECT_EQ(at::globalContext().deterministicAlgorithms(), before);
}

TEST_F(GpuOpsTest, HeadsThatFlashAttentionCannotTakeArePlain) {
  const at::Tensor q = values({33, 20}, 7).to(at::kBFloat16);
  EXPECT_FALSE(cuda::takes_packs(q, q, q, 2));
  EXPECT_FALSE(cuda::takes_packs(q.to(at::kFloat), q.to(at::kFloat), q.to(at::kFloat), 1));
}

/// Parameter, gradient, moments, average after three steps.
Tensors adamw_steps(const Tensors& start, bool with_average, const decltype(&ops::adamw)& step) {
  Tensors state;
  for (const auto& tensor : start) state.push_back(tensor.clone());
  AdamWStep options{1e-3, 0.9, 0.95, 1e-8, 0.1, 1, 0.7, 0.99};
  for (; options.step <= 3; ++options.step) {
    step(options, state[0].numel(), state[0].mutable_data_ptr<float>(), state[1].const_data_ptr<float>(),
         state[2].mutable_data_ptr<float>(), state[3].mutable_data_ptr<float>(),
         with_average ? state[4].mutable_data_ptr<float>() : nullptr);
  }
  return state;
}

TEST_F(GpuOpsTest, AdamWHasTheBitsOfTheCpu) {
  for (const int64_t count : {1, 257, 100003}) {
    for (const bool with_average : {false, true}) {
      Tensors on_gpu;
      Tensors on_cpu;
      for (uint64_t i = 0; i < 5; ++i) {
        on_gpu.push_back(values({count}, 30 + i).to(at::kFloat));
        if (i == 3) on_gpu.back() = on_gpu.back().square();
        on_cpu.push_back(on_gpu.back().cpu());
      }
      const Tensors expected = adamw_steps(on_cpu, with_average, &ops::adamw);
      const Tensors got = adamw_steps(on_gpu, with_average, &cuda::adamw);
      for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(at::equal(got[i].cpu(), expected[i])) << count << i;
    }
  }
}

}  // namespace
}  // namespace chiliad::ops
