#include <gtest/gtest.h>

#include "chiliad/image/decode_fit.h"
#include "chiliad/image/image.h"
#include "chiliad/image/srgb.h"
#include "tests/support/kits.h"
#include "tests/support/picture_compare.h"

namespace chiliad::image {
namespace {

using Tensors = std::map<std::string, test::LiteTensor>;

/// Pictures and their pixels in sRGB as Pillow's ImageCms gives them.
class ColourProfilesTest : public testing::Test {
 protected:
  [[nodiscard]] DecodeOptions options() {
    DecodeOptions options;
    options.background = {32, 64, 96};
    options.to_srgb = &converter_;
    options.profile_note = &note_;
    return options;
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : tensors_) {
      if (name.ends_with("/file")) names.push_back(name.substr(0, name.size() - 5));
    }
    return names;
  }
  [[nodiscard]] const std::vector<std::byte>& file(const std::string& name) const {
    return tensors_.at(name + "/file").bytes;
  }
  [[nodiscard]] HostArray decoded(const std::string& name) {
    auto picture = decode(file(name), options());
    EXPECT_TRUE(picture) << name << ": " << picture.reason;
    EXPECT_EQ(note_, "") << name;
    return std::move(*picture.value);
  }

  const Tensors tensors_ =
      test::read_safetensors_lite(test::golden_kit() / "colour_profiles" / "colour_profiles.safetensors");
  SrgbConverter converter_;
  std::string note_;
};

TEST_F(ColourProfilesTest, ColoursAreThoseOfPillow) {
  ASSERT_GE(names().size(), 13U);
  for (const std::string& name : names()) {
    const test::LiteTensor& expected = tensors_.at(name + "/rgb");
    const HostArray picture = decoded(name);
    // Pillow brings a later lcms; a table is interpolated in tables that lcms makes of it.
    EXPECT_EQ(test::difference(picture, expected, 1), "") << name;
    EXPECT_LE(test::distance(picture.bytes(), expected.bytes).mean_abs, 0.02) << name;
  }
}

TEST_F(ColourProfilesTest, ColoursAreStoredOnesWithoutTheOption) {
  int num_other = 0;
  for (const std::string& name : names()) {
    DecodeOptions plain;
    plain.background = {32, 64, 96};
    const auto picture = decode(file(name), plain);
    ASSERT_TRUE(picture) << picture.reason;
    if (test::distance(picture.value->bytes(), tensors_.at(name + "/rgb").bytes).mean_abs > 0.5) ++num_other;
  }
  EXPECT_GE(num_other, 12);  // all but the one that is sRGB
}

TEST_F(ColourProfilesTest, FittingConvertsBeforeItScales) {
  for (const std::string& name : names()) {
    FitOptions fitted;
    fitted.fit = [](int32_t width, int32_t height) { return cover_fit(width, height, 11, 13, 0.4, 0.7); };
    fitted.decode = options();
    std::vector<std::byte> slot(size_t{11} * 13 * 3);
    EXPECT_EQ(decode_fit(file(name), fitted, slot), "") << name;
    const HostArray expected = cover(decoded(name), 11, 13, Filter::kBicubic, 0.4, 0.7);
    EXPECT_EQ(test::distance(slot, expected.bytes()).max_abs, 0) << name;
  }
}

}  // namespace
}  // namespace chiliad::image
