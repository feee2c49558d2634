#include "chiliad/base/majority.h"

#include <gtest/gtest.h>

namespace chiliad {
namespace {

Odd of(const std::vector<int>& values) {
  return odd_ones<int>(values);
}

TEST(MajorityTest, NobodyIsOddWhereAllAreAlike) {
  EXPECT_TRUE(of({4, 4, 4}).places.empty());
}

TEST(MajorityTest, NobodyIsOddAmongNone) {
  EXPECT_TRUE(of({}).places.empty());
}

TEST(MajorityTest, NamesTheMinority) {
  const Odd odd = of({4, 7, 4, 5, 4});
  EXPECT_TRUE(odd.decided);
  EXPECT_EQ(odd.places, (std::vector<size_t>{1, 3}));
}

TEST(MajorityTest, TheMostFrequentValueNeedNotHaveHalf) {
  EXPECT_EQ(of({1, 2, 3, 3}).places, (std::vector<size_t>{0, 1}));
}

TEST(MajorityTest, TwoThatDifferAreBothOdd) {
  const Odd odd = of({1, 2});
  EXPECT_FALSE(odd.decided);
  EXPECT_EQ(odd.places, (std::vector<size_t>{0, 1}));
}

TEST(MajorityTest, ATieIsUndecided) {
  EXPECT_FALSE(of({1, 2, 2, 1, 3}).decided);
}

TEST(MajorityTest, AMajorityAfterATieDecides) {
  const Odd odd = of({1, 2, 2, 1, 2});
  EXPECT_TRUE(odd.decided);
  EXPECT_EQ(odd.places, (std::vector<size_t>{0, 3}));
}

}  // namespace
}  // namespace chiliad
