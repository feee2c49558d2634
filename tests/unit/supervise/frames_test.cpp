#include "chiliad/supervise/launch/frames.h"

#include <gtest/gtest.h>

namespace chiliad::supervise {
namespace {

TEST(FramesTest, ReadsAnErrorWithItsKind) {
  const auto error = read_error_frame(R"({"kind":"corrupt_data","place":"a.tar","message":"torn","step":4})");
  EXPECT_EQ(error.kind, ErrorKind::kCorruptData);
  EXPECT_EQ(error.message, "a.tar: torn");
  EXPECT_EQ(error.step, 4);
}

TEST(FramesTest, AnErrorMayBeAboutOtherRanks) {
  EXPECT_EQ(read_error_frame(R"({"kind":"peer_lost","message":"x","ranks":[2]})").ranks, std::vector{2});
}

TEST(FramesTest, AnUnknownKindIsOurBug) {
  EXPECT_EQ(read_error_frame(R"({"kind":"odd","message":"x"})").kind, ErrorKind::kInternal);
}

TEST(FramesTest, RefusesOtherText) {
  EXPECT_THROW((void)read_snapshot_frame("{\"step\":1}"), CorruptData);
}

TEST(FramesTest, SaysWhichSlotIsFree) {
  EXPECT_EQ(slot_free_body(1, 20, true), R"({"committed":true,"slot":1,"step":20})");
}

}  // namespace
}  // namespace chiliad::supervise
