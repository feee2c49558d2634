#include <gtest/gtest.h>

#include <iostream>

#include "chiliad/image/image.h"
#include "tests/support/kits.h"
#include "tests/support/picture_compare.h"

namespace chiliad::image {
namespace {

namespace fs = std::filesystem;

bool not_decoded(const std::string& reason) {
  return reason.find("bmp: unsupported format") != std::string::npos;
}

TEST(DecodeParityTest, FilesGiveTheKitsPixels) {
  const fs::path kit = test::golden_kit() / "images";
  const auto expected = test::read_safetensors_lite(kit / "rgb.safetensors");
  ASSERT_FALSE(expected.empty());
  int num_compared = 0;
  for (const auto& [name, pixels] : expected) {
    const auto picture = decode(test::read_bytes_lite(kit / "files" / name), {});
    if (!picture && not_decoded(picture.reason)) {
      std::cout << "not decoded: " << name << " (" << picture.reason.substr(0, picture.reason.find(':'))
                << ")\n";
      continue;
    }
    ++num_compared;
    ASSERT_TRUE(picture) << name << ": " << picture.reason;
    EXPECT_EQ(test::difference(*picture.value, pixels), "") << name;
  }
  EXPECT_GT(num_compared, 0);
}

TEST(DecodeParityTest, ProbeGivesTheKitsSizes) {
  const fs::path kit = test::golden_kit() / "images";
  for (const auto& [name, pixels] : test::read_safetensors_lite(kit / "rgb.safetensors")) {
    const auto info = probe(test::read_bytes_lite(kit / "files" / name));
    ASSERT_TRUE(info) << name << ": " << info.reason;
    EXPECT_EQ(info.value->width, pixels.shape[1]) << name;
    EXPECT_EQ(info.value->height, pixels.shape[0]) << name;
  }
}

}  // namespace
}  // namespace chiliad::image
