// Linear layers beside the exchange of their rows, against one rank: values and gradients, one chunk and
// several.
#include "chiliad/layers/parallel_linear.h"
#include "chiliad/ops/backward.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "chiliad/spec/tensor_shard.h"
#include "tests/contract/group/ranks.h"

namespace chiliad::layers {
namespace {

at::Tensor wave(const std::vector<int64_t>& sizes, double frequency) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return at::sin(at::arange(count, at::kDouble) * frequency + 0.1).view(sizes);
}

constexpr int64_t kBatch = 3;
constexpr int64_t kIn = 6;
constexpr int64_t kOut = 8;

struct Case {
  int ranks;
  int64_t length;
};

at::Tensor part(const at::Tensor& x, int64_t axis, const TensorParallel& ranks) {
  const auto [begin, end] = spec::even_part(x.size(axis), ranks.rank(), ranks.size());
  return x.narrow(axis, begin, end - begin).clone().detach().set_requires_grad(true);
}

/// 1 chunk where rows are few; up to 4 for the long ones.
class ParallelLinear : public testing::TestWithParam<Case> {
 protected:
  [[nodiscard]] std::vector<std::vector<at::Tensor>> on_ranks(
      const std::function<std::vector<at::Tensor>(const TensorParallel&)>& body) const {
    std::vector<std::vector<at::Tensor>> results(static_cast<size_t>(GetParam().ranks));
    test::run_ranks({"shm", GetParam().ranks},
                    [&](comm::Group& group) { results[static_cast<size_t>(group.rank())] = body({&group}); });
    return results;
  }
  static at::Tensor joined(const std::vector<std::vector<at::Tensor>>& results, size_t index, int64_t axis) {
    std::vector<at::Tensor> parts;
    for (const auto& result : results) parts.push_back(result[index]);
    return at::cat(parts, axis);
  }

  at::Tensor x_ = wave({kBatch, GetParam().length, kIn}, 0.7);
  at::Tensor weight_ = wave({kOut, kIn}, 0.3);
  at::Tensor bias_ = wave({kOut}, 2.3);
};

TEST_P(ParallelLinear, GatherLinearIsTheLayerOfOneRank) {
  const at::Tensor upstream = wave({kBatch, GetParam().length, kOut}, 1.1);
  const at::Tensor of_rows = wave({kBatch, GetParam().length, kIn}, 1.9);
  for (const bool want_rows : {false, true}) {
    const at::Tensor x = x_.clone().set_requires_grad(true);
    const at::Tensor weight = weight_.clone().set_requires_grad(true);
    const at::Tensor bias = bias_.clone().set_requires_grad(true);
    const at::Tensor wanted = at::linear(x, weight, bias);
    ops::backward({wanted}, {upstream});
    if (want_rows) x.mutable_grad().add_(of_rows);

    const auto results = on_ranks([&](const TensorParallel& ranks) {
      const at::Tensor own = part(x_, 1, ranks);
      const at::Tensor w = part(weight_, 0, ranks);
      const at::Tensor b = part(bias_, 0, ranks);
      const auto got = gather_linear(ranks, own, w, b, GetParam().length, want_rows);
      EXPECT_EQ(got.rows.defined(), want_rows);
      const auto [begin, end] = spec::even_part(kOut, ranks.rank(), ranks.size());
      std::vector<at::Tensor> outputs = {got.out};
      std::vector<at::Tensor> gradients = {upstream.narrow(2, begin, end - begin)};
      if (want_rows) {
        EXPECT_TRUE(at::equal(got.rows, x_));
        outputs.push_back(got.rows);
        gradients.push_back(of_rows / ranks.size());  // partial ones: their sum is the gradient
      }
      ops::backward(outputs, gradients);
      return std::vector{got.out.detach(), own.grad(), w.grad(), b.grad()};
    });
    EXPECT_TRUE(at::allclose(joined(results, 0, 2), wanted.detach(), 1e-12, 1e-12));
    EXPECT_TRUE(at::allclose(joined(results, 1, 1), x.grad(), 1e-12, 1e-12));
    EXPECT_TRUE(at::allclose(joined(results, 2, 0), weight.grad(), 1e-12, 1e-12));
    EXPECT_TRUE(at::allclose(joined(results, 3, 0), bias.grad(), 1e-12, 1e-12));
  }
}

TEST_P(ParallelLinear, LinearScatterIsTheLayerOfOneRank) {
  const at::Tensor upstream = wave({kBatch, GetParam().length, kOut}, 1.1);
  const at::Tensor x = x_.clone().set_requires_grad(true);
  const at::Tensor weight = weight_.clone().set_requires_grad(true);
  const at::Tensor wanted = at::linear(x, weight);
  ops::backward({wanted}, {upstream});

  const auto results = on_ranks([&](const TensorParallel& ranks) {
    const at::Tensor own = part(x_, 2, ranks);
    const at::Tensor w = part(weight_, 1, ranks);
    const at::Tensor out = linear_scatter(ranks, own, w);
    ops::backward({out}, {part(upstream, 1, ranks).detach()});
    return std::vector{out.detach(), own.grad(), w.grad()};
  });
  EXPECT_TRUE(at::allclose(joined(results, 0, 1), wanted.detach(), 1e-12, 1e-12));
  EXPECT_TRUE(at::allclose(joined(results, 1, 2), x.grad(), 1e-12, 1e-12));
  EXPECT_TRUE(at::allclose(joined(results, 2, 1), weight.grad(), 1e-12, 1e-12));
}

TEST_P(ParallelLinear, AFrozenWeightHasNoGradient) {
  static_cast<void>(on_ranks([&](const TensorParallel& ranks) {
    const at::Tensor own = part(x_, 1, ranks);
    const at::Tensor w = part(weight_, 0, ranks).detach();
    const auto got = gather_linear(ranks, own, w, {}, GetParam().length, false);
    ops::backward({got.out.sum()});
    EXPECT_TRUE(own.grad().defined());
    EXPECT_FALSE(w.grad().defined());
    return std::vector<at::Tensor>{};
  }));
}

INSTANTIATE_TEST_SUITE_P(Lengths, ParallelLinear,
                         testing::Values(Case{2, 8}, Case{2, 7}, Case{3, 2}, Case{2, 1}, Case{2, 400},
                                         Case{3, 1025}),
                         [](const auto& given) {
                           return "ranks" + std::to_string(given.param.ranks) + "rows" +
                                  std::to_string(given.param.length);
                         });

}  // namespace
}  // namespace chiliad::layers
