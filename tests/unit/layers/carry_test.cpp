#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "chiliad/base/error.h"
#include "chiliad/layers/layer.h"

namespace chiliad::layers {
namespace {

TEST(CarryTest, SetReplaces) {
  Carry carry;
  carry.set("x", at::zeros({1}, at::kFloat));
  carry.set("x", at::ones({1}, at::kFloat));
  EXPECT_EQ(carry.entries().size(), 1U);
  EXPECT_EQ(carry.get("x").item<float>(), 1.0F);
}

TEST(CarryTest, NamesAMissingEntry) {
  try {
    (void)Carry{}.get("image");
    FAIL() << "no exception";
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("'image'"), std::string::npos);
  }
}

class Scale final : public Layer {
 public:
  using Layer::Layer;
  void forward(Carry& carry) const override { carry.set("y", linear("fc", carry.get("x"))); }
};

spec::LayerDecl scale_decl() {
  spec::LayerDecl decl{};
  decl.name = "scale";
  decl.params = {{"scale.fc.weight", Shape{1, 1}}, {"scale.fc.bias", Shape{1}}};
  return decl;
}

TEST(LayerTest, FindsItsParametersByShortName) {
  Scale layer(scale_decl());
  layer.bind({at::full({1, 1}, 3.0, at::kFloat), at::full({1}, 0.5, at::kFloat)});
  Carry carry;
  carry.set("x", at::full({1, 1}, 2.0, at::kFloat));
  layer.forward(carry);
  EXPECT_EQ(carry.get("y").item<float>(), 6.5F);
}

TEST(LayerTest, RefusesAnotherNumberOfParameters) {
  Scale layer(scale_decl());
  EXPECT_THROW(layer.bind({at::zeros({1, 1}, at::kFloat)}), InternalError);
}

}  // namespace
}  // namespace chiliad::layers
