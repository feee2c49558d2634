#include "chiliad/features/part.h"

#include <gtest/gtest.h>

#include "chiliad/base/error.h"
#include "chiliad/io/file.h"
#include "tests/support/picture_set.h"
#include "tests/support/temp_dir.h"

namespace chiliad::features {
namespace {

Part some_part() {
  Part part;
  part.features.push_back({{7, false}, DType::kF32, Shape{2, 3}, std::vector<std::byte>(24, std::byte{1})});
  part.features.push_back({{7, true}, DType::kBF16, Shape{5}, std::vector<std::byte>(10, std::byte{2})});
  part.features.push_back({{4000000000U, false}, DType::kF32, Shape{0, 3}, {}});
  part.refused.emplace(9, "is no picture");
  return part;
}

class PartTest : public testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path path() const { return dir_.path() / "000000.safetensors"; }
  test::TempDir dir_;
  Digest column_{1, 2};
};

TEST_F(PartTest, ComesBackWithShapesAndRefusals) {
  write_part(path(), column_, some_part());
  const auto content = read_part(path(), column_);
  ASSERT_EQ(content.entries.size(), 3U);
  EXPECT_EQ(content.entries[0].id, (FeatureId{7, false}));
  EXPECT_EQ(content.entries[0].shape, (Shape{2, 3}));
  EXPECT_EQ(content.entries[1].id, (FeatureId{7, true}));
  EXPECT_EQ(content.entries[1].dtype, DType::kBF16);
  EXPECT_EQ(content.entries[2].shape, (Shape{0, 3}));
  EXPECT_EQ(content.refused.at(9), "is no picture");
  const auto file = io::File::open_read(path());
  std::vector<std::byte> bytes(10);
  file.read_at(content.entries[1].begin, bytes);
  EXPECT_EQ(bytes, some_part().features[1].bytes);
  EXPECT_EQ(content.entries[1].checksum, hash64(std::span<const std::byte>(bytes)));
}

TEST_F(PartTest, OfAnotherColumnIsRefused) {
  write_part(path(), column_, some_part());
  EXPECT_THROW((void)read_part(path(), Digest{1, 3}), CorruptData);
}

TEST_F(PartTest, LeavesNothingBesideIt) {
  write_part(path(), column_, some_part());
  write_part(path(), column_, some_part());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_.path()), {}), 1);
}

TEST_F(PartTest, EmptyPartsExist) {
  write_part(path(), column_, {});
  EXPECT_TRUE(read_part(path(), column_).entries.empty());
}

}  // namespace
}  // namespace chiliad::features
