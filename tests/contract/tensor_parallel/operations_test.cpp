// The operations of a wide region: what they give, and the convention for gradients.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "chiliad/layers/vocabulary.h"
#include "chiliad/ops/backward.h"
#include "chiliad/spec/tensor_shard.h"
#include "tests/contract/group/ranks.h"

namespace chiliad::layers {
namespace {

at::Tensor wave(const std::vector<int64_t>& sizes, double frequency) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return at::sin(at::arange(count, at::kDouble) * frequency + 0.1).view(sizes);
}

/// Runs `body` on every rank; what each returned, by rank.
std::vector<std::vector<at::Tensor>> on_ranks(
    int size, const std::function<std::vector<at::Tensor>(const TensorParallel&)>& body) {
  std::vector<std::vector<at::Tensor>> results(static_cast<size_t>(size));
  test::run_ranks({"shm", size},
                  [&](comm::Group& group) { results[static_cast<size_t>(group.rank())] = body({&group}); });
  return results;
}

constexpr int kRanks = 3;

/// Sequence lengths: divisible, not, and fewer rows than ranks.
class RowOperations : public testing::TestWithParam<int64_t> {};

TEST_P(RowOperations, GatheringOwnRowsGivesAll) {
  const at::Tensor x = wave({2, GetParam(), 4}, 0.7);
  const auto results = on_ranks(kRanks, [&](const TensorParallel& ranks) {
    return std::vector{gather_rows(ranks, own_rows(ranks, x), GetParam())};
  });
  for (const auto& result : results) EXPECT_TRUE(at::equal(result[0], x));
}

TEST_P(RowOperations, ScatteringSumsTheRanksParts) {
  const at::Tensor x = wave({2, GetParam(), 4}, 0.7);
  const auto results = on_ranks(kRanks, [&](const TensorParallel& ranks) {
    return std::vector{scatter_rows(ranks, x * (ranks.rank() + 1))};
  });
  std::vector<at::Tensor> rows;
  for (const auto& result : results) rows.push_back(result[0]);
  EXPECT_TRUE(at::allclose(at::cat(rows, 1), x * 6, 1e-14, 0));
}

TEST_P(RowOperations, GatherSendsThePartialGradientsBackSummed) {
  const at::Tensor x = wave({1, GetParam(), 4}, 0.7);
  const at::Tensor upstream = wave({1, GetParam(), 4}, 1.3);
  const auto results = on_ranks(kRanks, [&](const TensorParallel& ranks) {
    const at::Tensor own = own_rows(ranks, x).clone().set_requires_grad(true);
    ops::backward({gather_rows(ranks, own, GetParam())}, {upstream * (ranks.rank() + 1)});
    return std::vector{own.grad()};
  });
  std::vector<at::Tensor> rows;
  for (const auto& result : results) rows.push_back(result[0]);
  EXPECT_TRUE(at::allclose(at::cat(rows, 1), upstream * 6, 1e-14, 0));
}

TEST_P(RowOperations, ScatterGivesEveryRankTheWholeGradient) {
  const at::Tensor x = wave({1, GetParam(), 4}, 0.7);
  const at::Tensor upstream = wave({1, GetParam(), 4}, 1.3);
  const auto results = on_ranks(kRanks, [&](const TensorParallel& ranks) {
    const at::Tensor part = x.clone().set_requires_grad(true);
    ops::backward({scatter_rows(ranks, part)}, {own_rows(ranks, upstream)});
    return std::vector{part.grad()};
  });
  for (const auto& result : results) EXPECT_TRUE(at::equal(result[0], upstream));
}

INSTANTIATE_TEST_SUITE_P(Lengths, RowOperations, testing::Values(6, 7, 2, 1));

TEST(SumPartialTest, SumsForwardAndBackward) {
  const auto results = on_ranks(kRanks, [&](const TensorParallel& ranks) {
    const at::Tensor x = at::full({2}, ranks.rank() + 1.0, at::kDouble).set_requires_grad(true);
    const at::Tensor sum = sum_partial(ranks, x);
    ops::backward({sum}, {at::full({2}, ranks.rank() + 1.0, at::kDouble)});
    return std::vector{sum.detach(), x.grad()};
  });
  for (const auto& result : results) {
    EXPECT_TRUE(at::equal(result[0], at::full({2}, 6.0, at::kDouble)));
    EXPECT_TRUE(at::equal(result[1], at::full({2}, 6.0, at::kDouble)));
  }
}

TEST(LargestOfRanksTest, IsElementByElement) {
  const auto results = on_ranks(kRanks, [&](const TensorParallel& ranks) {
    return std::vector{largest_of_ranks(ranks, at::arange(3, at::kLong).eq(ranks.rank()).to(at::kDouble))};
  });
  for (const auto& result : results) EXPECT_TRUE(at::equal(result[0], at::ones({3}, at::kDouble)));
}

constexpr int64_t kWords = 18;  // 6 a rank

TEST(VocabularyEmbeddingTest, IsTheLookUpOfTheWholeTable) {
  const at::Tensor table = wave({kWords, 4}, 0.7);
  const at::Tensor tokens = (at::arange(7, at::kLong) * 5) % kWords;
  const at::Tensor upstream = wave({1, 7, 4}, 1.3);
  const auto results = on_ranks(kRanks, [&](const TensorParallel& ranks) {
    const at::Tensor part = table.narrow(0, ranks.rank() * 6, 6).clone().set_requires_grad(true);
    const at::Tensor rows = vocabulary_embedding(ranks, part, tokens);
    ops::backward({rows}, {own_rows(ranks, upstream)});
    return std::vector{rows.detach(), part.grad()};
  });
  std::vector<at::Tensor> rows;
  std::vector<at::Tensor> gradients;
  for (const auto& result : results) {
    rows.push_back(result[0]);
    gradients.push_back(result[1]);
  }
  EXPECT_TRUE(at::equal(at::cat(rows, 1).squeeze(0), table.index_select(0, tokens)));
  const at::Tensor expected = at::zeros({kWords, 4}, at::kDouble).index_add(0, tokens, upstream.squeeze(0));
  EXPECT_TRUE(at::allclose(at::cat(gradients), expected, 1e-14, 0));
}

/// How the ranks share the upstream gradient 1 of a loss that is equal on all.
class VocabularyLoss : public testing::TestWithParam<bool> {};

TEST_P(VocabularyLoss, IsThatOfTheWholeTable) {
  const bool evenly = GetParam();
  const at::Tensor hidden = wave({13, 4}, 0.7) * 3;
  const at::Tensor table = wave({kWords, 4}, 1.3);
  const at::Tensor weights = wave({13}, 0.4) + 1.5;
  at::Tensor targets = (at::arange(13, at::kLong) * 5) % kWords;
  targets.narrow(0, 3, 2).fill_(ops::kIgnoredTarget);
  const auto run = [&](const TensorParallel& ranks) {
    const int64_t words = kWords / ranks.size();
    const at::Tensor all = hidden.clone().set_requires_grad(true);
    const at::Tensor part = table.narrow(0, ranks.rank() * words, words).clone().set_requires_grad(true);
    const auto losses = vocabulary_loss(ranks, all, part, targets, weights, 4);
    const double share = evenly ? 1.0 / ranks.size() : (ranks.rank() == 0 ? 1.0 : 0.0);
    ops::backward({losses.loss}, {at::full({}, share, at::kDouble)});
    return std::vector{losses.loss.detach(), losses.tokens, all.grad(), part.grad()};
  };
  const auto expected = run({});
  const auto results = on_ranks(kRanks, run);
  at::Tensor hidden_gradient = at::zeros_like(expected[2]);
  std::vector<at::Tensor> table_gradients;
  for (const auto& result : results) {
    EXPECT_TRUE(at::allclose(result[0], expected[0], 1e-13, 0));
    EXPECT_TRUE(at::allclose(result[1], expected[1], 1e-12, 1e-14));
    hidden_gradient += result[2];
    table_gradients.push_back(result[3]);
  }
  EXPECT_TRUE(at::allclose(hidden_gradient, expected[2], 1e-11, 1e-13));
  EXPECT_TRUE(at::allclose(at::cat(table_gradients), expected[3], 1e-11, 1e-13));
}

INSTANTIATE_TEST_SUITE_P(Shares, VocabularyLoss, testing::Bool(),
                         [](const auto& test) { return test.param ? "evenly" : "byRankZero"; });

}  // namespace
}  // namespace chiliad::layers
