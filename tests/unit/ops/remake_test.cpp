#include "chiliad/ops/remake.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "chiliad/base/error.h"
#include "chiliad/ops/backward.h"

namespace chiliad::ops {
namespace {

/// sum of gelu(x) W^T, with the gradients that it gives.
struct Trial {
  at::Tensor x = at::linspace(-2.0, 2.0, 12, at::kFloat).view({3, 4}).requires_grad_();
  at::Tensor weight = at::linspace(-1.0, 1.0, 8, at::kFloat).view({2, 4}).requires_grad_();
  at::Tensor value;  // what is made
  int num_made = 0;

  at::Tensor forward() {
    return remade(
        [this, given = x] {
          ++num_made;
          return at::gelu(given, "tanh");
        },
        [this](const at::Tensor& made) {
          value = made.detach();
          return at::linear(made, weight);
        });
  }
  void backward(const at::Tensor& result) { ops::backward({result.square().sum()}); }
};

TEST(RemakeTest, GradientsHaveTheBitsOfKeeping) {
  Trial kept;
  kept.backward(kept.forward());
  Trial again;
  {
    const RemakeGuard guard(true);
    again.backward(again.forward());
  }
  EXPECT_TRUE(at::equal(kept.x.grad(), again.x.grad()));
  EXPECT_TRUE(at::equal(kept.weight.grad(), again.weight.grad()));
  EXPECT_EQ(kept.num_made, 1);
  EXPECT_EQ(again.num_made, 2);
}

TEST(RemakeTest, TheMemoryIsAwayBetweenForwardAndBackward) {
  const RemakeGuard guard(true);
  Trial trial;
  const at::Tensor result = trial.forward();
  EXPECT_EQ(trial.value.storage().data(), nullptr);
  trial.backward(result);
  EXPECT_NE(trial.value.storage().data(), nullptr);
}

TEST(RemakeTest, BackwardMayRunOutsideOfTheGuard) {
  Trial trial;
  at::Tensor result;
  {
    const RemakeGuard guard(true);
    result = trial.forward();
  }
  trial.backward(result);
  EXPECT_EQ(trial.num_made, 2);
}

TEST(RemakeTest, NothingGoesWithoutAGraph) {
  const RemakeGuard guard(true);
  const at::NoGradGuard no_grad;
  Trial trial;
  static_cast<void>(trial.forward());
  EXPECT_NE(trial.value.storage().data(), nullptr);
}

TEST(RemakeTest, OnceForSeveralUses) {
  const RemakeGuard guard(true);
  const at::Tensor x = at::ones({3}, at::kFloat).requires_grad_();
  int num_made = 0;
  const auto results = remade_for_all(
      [&num_made, x] {
        ++num_made;
        return x * 2;
      },
      [](const at::Tensor& made) {
        return std::vector<at::Tensor>{made.square(), made.pow(3)};
      });
  ops::backward({results[0].sum() + results[1].sum()});
  EXPECT_EQ(num_made, 2);
  EXPECT_TRUE(at::equal(x.grad(), at::full({3}, 8.0F + 24.0F)));
}

TEST(RemakeTest, MemoryOfOthersIsRefused) {
  const RemakeGuard guard(true);
  const at::Tensor x = at::ones({3}, at::kFloat).requires_grad_() * 1;
  const at::Tensor result =
      remade([x] { return x.view({3}); }, [](const at::Tensor& made) { return made.square(); });
  EXPECT_THROW(ops::backward({result.sum()}), InternalError);
}

}  // namespace
}  // namespace chiliad::ops
