#include "chiliad/parallel/segment.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace chiliad::parallel {
namespace {

using spec::Recompute;

/// y = x * mask / keep, with a mask that torch's generator draws, as a layer of an extension may.
class DropoutLayer final : public layers::Layer {
 public:
  DropoutLayer() : Layer(declared()) {}
  void forward(layers::Carry& carry) const override {
    const at::Tensor& x = carry.get("x");
    carry.set("y", x * at::bernoulli(at::full_like(x.detach(), 0.5)) * 2.0);
  }

 private:
  static spec::LayerDecl declared() {
    spec::LayerDecl decl{};
    decl.name = "dropout";
    decl.reads = {"x"};
    decl.writes = {"y"};
    return decl;
  }
};

struct Result {
  at::Tensor output;
  at::Tensor gradient;
  at::Tensor drawn_after;  ///< by who comes next
};

/// Two layers' worth of draws between forward and backward, as in a step of a model.
Result run(Recompute recompute) {
  at::manual_seed(7);
  const DropoutLayer layer;
  layers::Carry carry;
  carry.set("x", at::ones({64, 8}));
  Segment segment = run_forward(layer, carry, {.recompute = recompute});
  Result result;
  result.output = carry.get("y");
  static_cast<void>(at::rand({100}));
  layers::Carry gradients;
  gradients.set("y", at::ones({64, 8}));
  run_backward(std::move(segment), gradients);
  result.gradient = gradients.get("x");
  result.drawn_after = at::rand({4});
  return result;
}

TEST(SegmentTest, RecomputationDrawsTheSameNumbersAgain) {
  const Result kept = run(Recompute::kNone);
  const Result again = run(Recompute::kLayers);
  EXPECT_TRUE(at::equal(kept.output, again.output));
  EXPECT_TRUE(at::equal(again.gradient, again.output));  // of ones: the mask itself
  EXPECT_TRUE(at::equal(kept.gradient, again.gradient));
}

TEST(SegmentTest, RecomputationLeavesTheGeneratorWhereItWas) {
  EXPECT_TRUE(at::equal(run(Recompute::kNone).drawn_after, run(Recompute::kLayers).drawn_after));
}

}  // namespace
}  // namespace chiliad::parallel
