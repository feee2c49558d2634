#include "chiliad/model/load_weights.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chiliad/base/error.h"
#include "chiliad/io/file.h"
#include "tests/support/temp_dir.h"

namespace chiliad::model {
namespace {

using testing::HasSubstr;

class LoadWeightsTest : public testing::Test {
 protected:
  LoadWeightsTest() {
    spec::LayerDecl layer;
    layer.params.push_back({"a.weight", Shape{2, 2}, spec::Init::kOne, true});
    layer.params.push_back({"a.bias", Shape{2}, spec::Init::kZero, false});
    table_.layers.push_back(std::move(layer));
  }
  /// Writes tensors of a float type that `dtype` names.
  void write(const char* file_name, const std::vector<std::pair<std::string, at::Tensor>>& tensors,
             DType dtype) const {
    auto file = io::File::create(dir_.path() / file_name);
    std::vector<weights::TensorBytes> entries;
    for (const auto& [name, tensor] : tensors) {
      entries.push_back({{name, dtype, Shape(tensor.sizes().vec())},
                         {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}});
    }
    weights::write_safetensors(file, entries, {});
    file.close();
  }
  [[nodiscard]] std::vector<std::vector<at::Tensor>> load(at::ScalarType type = at::kFloat) const {
    return load_weights(table_, dir_.path(), weights::KeyTable(), type);
  }
  [[nodiscard]] std::string refusal() const {
    try {
      (void)load();
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "";
  }

  test::TempDir dir_;
  spec::LayerTable table_;
  at::Tensor weight_ = at::arange(4, at::kFloat).view({2, 2}) + 0.5;
  at::Tensor bias_ = at::tensor({-1.0F, 3.0F});
};

TEST_F(LoadWeightsTest, ParametersComeInTheOrderOfTheTable) {
  write("model.safetensors", {{"a.bias", bias_}, {"a.weight", weight_}}, DType::kF32);
  const auto params = load();
  EXPECT_TRUE(params.at(0).at(0).equal(weight_));
  EXPECT_TRUE(params.at(0).at(1).equal(bias_));
}

TEST_F(LoadWeightsTest, ReadsShards) {
  write("one.safetensors", {{"a.weight", weight_}}, DType::kF32);
  write("two.safetensors", {{"a.bias", bias_}}, DType::kF32);
  io::write_atomic(dir_.path() / "model.safetensors.index.json",
                   R"({"weight_map":{"a.weight":"one.safetensors","a.bias":"two.safetensors"}})");
  EXPECT_TRUE(load().at(0).at(1).equal(bias_));
}

TEST_F(LoadWeightsTest, ReadsBf16AsFp32) {
  write("model.safetensors", {{"a.weight", weight_.to(at::kBFloat16)}, {"a.bias", bias_.to(at::kBFloat16)}},
        DType::kBF16);
  EXPECT_TRUE(load().at(0).at(0).equal(weight_));
}

TEST_F(LoadWeightsTest, ReadsFp16AsBf16) {
  write("model.safetensors", {{"a.weight", weight_.to(at::kHalf)}, {"a.bias", bias_.to(at::kHalf)}},
        DType::kF16);
  EXPECT_TRUE(load(at::kBFloat16).at(0).at(0).equal(weight_.to(at::kBFloat16)));
}

TEST_F(LoadWeightsTest, NamesWhatIsMissing) {
  write("model.safetensors", {{"a.weight", weight_}}, DType::kF32);
  EXPECT_THAT(refusal(), HasSubstr("1 missing: a.bias"));
}

TEST_F(LoadWeightsTest, NamesWhatIsUnexpectedAndOfAnotherShape) {
  write("model.safetensors", {{"a.weight", weight_}, {"a.bias", at::ones({3})}, {"b", bias_}}, DType::kF32);
  EXPECT_THAT(refusal(), HasSubstr("1 unexpected: b; 1 of another shape: a.bias: expected [2], got [3]"));
}

TEST_F(LoadWeightsTest, IntegersAreNoWeights) {
  write("model.safetensors", {{"a.weight", weight_.to(at::kInt)}, {"a.bias", bias_.to(at::kInt)}},
        DType::kI32);
  EXPECT_THAT(refusal(), HasSubstr("expected fp32, bf16, fp16 or fp64, got I32"));
}

}  // namespace
}  // namespace chiliad::model
