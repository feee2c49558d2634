#include <gtest/gtest.h>

#include "chiliad/dataset/detail/tar_header.h"

namespace chiliad::dataset::detail {
namespace {

using Number = std::optional<uint64_t>;

std::string_view bytes(const char* text, size_t length) {
  return {text, length};
}

TEST(TarNumberTest, ReadsOctal) {
  EXPECT_EQ(parse_tar_number(bytes("00000001750\0", 12)), Number(1000));
}

TEST(TarNumberTest, ReadsPaddedOctal) {
  EXPECT_EQ(parse_tar_number("   1750 "), Number(1000));
}

TEST(TarNumberTest, ReadsBase256) {
  EXPECT_EQ(parse_tar_number(bytes("\x80\0\0\0\0\0\0\x02\x40\0\0\0", 12)), Number(9ULL << 30));
}

TEST(TarNumberTest, RefusesNegativeBase256) {
  EXPECT_EQ(parse_tar_number(bytes("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 12)), Number());
}

TEST(TarNumberTest, RefusesBase256BeyondSixtyThreeBits) {
  EXPECT_EQ(parse_tar_number(bytes("\x80\0\0\x01\0\0\0\0\0\0\0\0", 12)), Number());
}

TEST(TarNumberTest, RefusesOtherText) {
  EXPECT_EQ(parse_tar_number("0000009x    "), Number());
}

TEST(TarNumberTest, RefusesAnEmptyField) {
  EXPECT_EQ(parse_tar_number(bytes("\0\0\0\0", 4)), Number());
}

TEST(PaxTest, ReadsPathAndSize) {
  const auto records = parse_pax("12 path=a/b\n11 size=70\n");
  ASSERT_TRUE(records.has_value());
  EXPECT_EQ(records->path, "a/b");
  EXPECT_EQ(records->size, Number(70));
}

TEST(PaxTest, KeepsNewlinesInAValue) {
  EXPECT_EQ(parse_pax("12 path=a\nb\n")->path, "a\nb");
}

TEST(PaxTest, SeesSparseFiles) {
  EXPECT_TRUE(parse_pax("22 GNU.sparse.major=1\n")->sparse);
}

TEST(PaxTest, RefusesALengthBeyondTheText) {
  EXPECT_FALSE(parse_pax("99 path=a\n").has_value());
}

TEST(PaxTest, RefusesALengthInsideTheRecord) {
  EXPECT_FALSE(parse_pax("3 path=a\n").has_value());
}

TEST(PaxTest, RefusesASizeThatIsNoNumber) {
  EXPECT_FALSE(parse_pax("11 size=-1\n").has_value());
}

}  // namespace
}  // namespace chiliad::dataset::detail
