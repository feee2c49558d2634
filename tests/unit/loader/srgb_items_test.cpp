#include <gtest/gtest.h>

#include "chiliad/image/decode_fit.h"
#include "chiliad/image/srgb.h"
#include "chiliad/loader/item_loader.h"
#include "chiliad/stepplan/plan.h"
#include "tests/support/kits.h"
#include "tests/support/picture_compare.h"
#include "tests/support/synthetic_index.h"
#include "tests/unit/loader/made_data.h"

namespace chiliad::loader {
namespace {

constexpr stepplan::Bucket kBucket{16, 16};

/// Picture 0 of an index is one with a profile.
class SrgbItemsTest : public testing::Test {
 protected:
  void put(const std::vector<std::byte>& bytes) {
    bytes_ = bytes;
    data_.replace_picture(0, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), true);
  }
  [[nodiscard]] HostArray loaded(bool to_srgb) {
    ItemLoaderOptions options;
    options.pictures.to_srgb = to_srgb;
    ItemLoader loader(data_.index(), options);
    stepplan::Item item;
    item.sample = 0;
    item.crop_x = 0.5F;
    item.crop_y = 0.5F;
    HostArray pixels(DType::kU8, Shape{kBucket.height, kBucket.width, 3});
    EXPECT_EQ(loader.load_alone(item, kBucket, pixels.bytes()), "");
    profiles_left_ = loader.profiles_left();
    return pixels;
  }
  [[nodiscard]] HostArray expected(bool to_srgb) const {
    image::SrgbConverter converter;
    image::DecodeOptions options;
    if (to_srgb) options.to_srgb = &converter;
    const auto picture = image::decode(bytes_, options);
    return image::cover(*picture.value, kBucket.width, kBucket.height, image::Filter::kBicubic, 0.5, 0.5);
  }
  static int apart(const HostArray& a, const HostArray& b) {
    return test::distance(a.bytes(), b.bytes()).max_abs;
  }

  test::MadeData data_{4};
  std::vector<std::byte> bytes_;
  int64_t profiles_left_ = 0;
};

TEST_F(SrgbItemsTest, ColoursAreConvertedWithTheOptionAlone) {
  const auto kit = test::golden_kit() / "colour_profiles" / "colour_profiles.safetensors";
  put(test::read_safetensors_lite(kit).at("p3.png/file").bytes);
  EXPECT_EQ(apart(loaded(true), expected(true)), 0);
  EXPECT_EQ(profiles_left_, 0);
  EXPECT_EQ(apart(loaded(false), expected(false)), 0);
  EXPECT_GT(apart(expected(true), expected(false)), 8);
}

TEST_F(SrgbItemsTest, ABrokenProfileIsCountedAndThePictureUsed) {
  put(test::read_bytes_lite(test::hard_files_kit() / "images" / "icc_garbage.jpg"));
  EXPECT_EQ(apart(loaded(true), expected(false)), 0);
  EXPECT_EQ(profiles_left_, 1);
  EXPECT_EQ(apart(loaded(false), expected(false)), 0);
  EXPECT_EQ(profiles_left_, 0);
}

TEST_F(SrgbItemsTest, ARunWithTheOptionHasOtherContent) {
  spec::DataOptions options;
  options.batch = 2;
  const auto& index = data_.index();
  const auto digest = [&] {
    return stepplan::Plan(index, options, 1, test::byte_tokens(index), {}, stepplan::PlanPart::kTraining)
        .content_digest();
  };
  const Digest plain = digest();
  options.to_srgb = true;
  EXPECT_NE(digest(), plain);
}

}  // namespace
}  // namespace chiliad::loader
