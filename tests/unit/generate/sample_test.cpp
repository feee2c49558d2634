#include "chiliad/generate/sample.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "chiliad/base/error.h"
#include "chiliad/base/hash.h"
#include "chiliad/base/rng.h"
#include "chiliad/checkpoint/commit.h"
#include "chiliad/generate/inference_model.h"
#include "chiliad/generate/picture_grid.h"
#include "tests/support/checkpoint_kit.h"
#include "tests/support/temp_dir.h"

namespace chiliad::generate {
namespace {

/// A tiny model with random weights, as a checkpoint.
class SampleTest : public testing::Test {
 protected:
  SampleTest() {
    options_.width = 16;
    options_.depth = 1;
    options_.heads = 2;
    options_.patch = 4;
    spec::RunFile run;
    run.model = options_;
    run.data.index = "unused";
    std::vector<test::WholeTensor> tensors;
    for (const auto& layer : spec::make_layer_table(options_).layers) {
      for (const auto& param : layer.params) tensors.push_back(random_tensor(param));
    }
    Rng rng({9});
    checkpoint::CheckpointWriter writer(dir_.path(), 1, 1, spec::to_yaml(run));
    writer.write_rank(test::view_of(1, 0, test::state_of(1), test::split_rows(tensors, 1, rng)[0]));
    writer.commit();
    model_ = std::make_unique<InferenceModel>(checkpoint::Checkpoint::open(writer.path()));
  }

  static test::WholeTensor random_tensor(const spec::ParamDecl& param) {
    test::WholeTensor tensor{"model", param.name, DType::kF32, param.shape, {}};
    std::vector<float> values(static_cast<size_t>(param.shape.count()));
    Rng rng({hash64(param.name)});
    rng.fill_normal(values);
    for (float& value : values) value *= 0.2F;
    const auto bytes = std::as_bytes(std::span(values));
    tensor.data.assign(bytes.begin(), bytes.end());
    return tensor;
  }

  std::vector<HostArray> make(const std::vector<Request>& requests,
                              const GuidanceOptions& guidance = {.scale = 2.0}) const {
    const auto maker = make_picture_maker(
        model_->run(), [this](layers::Carry carry) { return model_->predict(std::move(carry)); });
    return sample(*maker, requests, {.steps = 4, .guidance = guidance}, {});
  }

  test::TempDir dir_;
  spec::ModelOptions options_;
  std::unique_ptr<InferenceModel> model_;
};

int largest_difference(const HostArray& a, const HostArray& b) {
  int largest = 0;
  for (size_t i = 0; i < a.as<uint8_t>().size(); ++i)
    largest = std::max(largest, std::abs(a.as<uint8_t>()[i] - b.as<uint8_t>()[i]));
  return largest;
}

TEST_F(SampleTest, PictureDependsOnItsRequestAlone) {
  const Request wanted{"a cat", 16, 8, 3};
  const auto together = make({{"a much longer caption", 16, 8, 1}, wanted, {"", 16, 8, 2}, {"dog", 8, 8, 4}});
  const auto alone = make({wanted});
  EXPECT_EQ(together[1].shape(), (Shape{8, 16, 3}));
  EXPECT_LE(largest_difference(together[1], alone[0]),
            1);  // rounding to a level may differ by the order of sums
}

TEST_F(SampleTest, SeedsGiveOtherPictures) {
  const auto made = make({{"a cat", 16, 8, 3}, {"a cat", 16, 8, 4}});
  EXPECT_GT(largest_difference(made[0], made[1]), 8);
}

TEST_F(SampleTest, PromptsChangeThePicture) {
  const auto made = make({{"a cat", 16, 8, 3}, {"something else", 16, 8, 3}});
  EXPECT_GT(largest_difference(made[0], made[1]), 0);
}

TEST_F(SampleTest, FormsOfGuidanceAgree) {
  const Request wanted{"a cat", 16, 8, 3};
  const auto from_conditional = make({wanted}, {.scale = 2.0, .form = GuidanceForm::kFromConditional});
  EXPECT_EQ(largest_difference(make({wanted}, {.scale = 3.0})[0], from_conditional[0]), 0);
  EXPECT_GT(largest_difference(make({wanted}, {.scale = 2.0})[0], from_conditional[0]), 0);
  const auto unguided = make({wanted}, {.scale = 0.0, .form = GuidanceForm::kFromConditional});
  EXPECT_EQ(largest_difference(make({wanted}, {.scale = 1.0})[0], unguided[0]), 0);
}

TEST_F(SampleTest, GuidesChannelsOfLatentsAlone) {
  try {
    (void)make({{"a cat", 16, 8, 3}}, {.scale = 2.0, .channels = 3});
    FAIL() << "no exception";
  } catch (const InvalidInput& error) {
    EXPECT_NE(std::string(error.what()).find("expected 0 for family pixel_dit"), std::string::npos)
        << error.what();
  }
}

TEST_F(SampleTest, RefusesSidesThatAreNoMultipleOfThePatch) {
  try {
    (void)make({{"a cat", 18, 8, 3}});
    FAIL() << "no exception";
  } catch (const InvalidInput& error) {
    EXPECT_NE(std::string(error.what()).find("expected multiples of 4 pixels, got 18x8"), std::string::npos)
        << error.what();
  }
}

TEST(PictureGridTest, PutsPicturesIntoCells) {
  std::vector<HostArray> pictures;
  for (int i = 0; i < 3; ++i) {
    pictures.emplace_back(DType::kU8, Shape{2, 2, 3});
    std::fill(pictures.back().as<uint8_t>().begin(), pictures.back().as<uint8_t>().end(),
              static_cast<uint8_t>(10 * i));
  }
  const HostArray grid = make_grid(pictures, 2, 1);
  EXPECT_EQ(grid.shape(), (Shape{2 * (2 + 4) + 4, 2 * (2 + 4) + 4, 3}));
  EXPECT_EQ(grid.as<uint8_t>()[static_cast<size_t>((4 * grid.shape()[1] + 10) * 3)], 10);
}

}  // namespace
}  // namespace chiliad::generate
