#include "chiliad/image/jitter.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/picture_bytes.h"

namespace chiliad::image {
namespace {

HostArray jittered(const Jitter& amounts, uint64_t key) {
  HostArray picture = test::sloped_picture(16, 12);
  Rng rng(key);
  jitter(amounts, rng, picture.bytes());
  return picture;
}

bool same(const HostArray& a, const HostArray& b) {
  return std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin(), b.bytes().end());
}

TEST(JitterTest, NothingAskedChangesNothing) {
  EXPECT_TRUE(same(jittered({}, 1), test::sloped_picture(16, 12)));
}

TEST(JitterTest, EqualKeysGiveEqualPictures) {
  const Jitter amounts{0.4, 0.4, 0.4};
  EXPECT_TRUE(same(jittered(amounts, 5), jittered(amounts, 5)));
  EXPECT_FALSE(same(jittered(amounts, 5), jittered(amounts, 6)));
}

TEST(JitterTest, AnAmountDoesNotMoveTheOtherDraws) {
  HostArray by_parts = test::sloped_picture(16, 12);
  for (const Jitter& amounts : {Jitter{.brightness = 0.3}, Jitter{.saturation = 0.7}}) {
    Rng rng(9);
    jitter(amounts, rng, by_parts.bytes());
  }
  EXPECT_TRUE(same(by_parts, jittered({.brightness = 0.3, .saturation = 0.7}, 9)));
}

}  // namespace
}  // namespace chiliad::image
