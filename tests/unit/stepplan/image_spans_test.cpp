#include "chiliad/stepplan/image_spans.h"

#include <gtest/gtest.h>

#include <vector>

namespace chiliad::stepplan {
namespace {

const std::vector<ImageSpan> kSpans{{10, 20}, {30, 5}, {50, 20}};

TEST(ImageSpansTest, ShortDocumentsAreWhole) {
  EXPECT_EQ(cut_outside_spans(80, kSpans, 100), 80);
}

TEST(ImageSpansTest, TextIsCutAtTheLimit) {
  EXPECT_EQ(cut_outside_spans(80, kSpans, 75), 75);
  EXPECT_EQ(cut_outside_spans(80, kSpans, 40), 40);
  EXPECT_EQ(cut_outside_spans(80, {}, 7), 7);
}

TEST(ImageSpansTest, APictureIsKeptWholeOrNotAtAll) {
  EXPECT_EQ(cut_outside_spans(80, kSpans, 11), 10);
  EXPECT_EQ(cut_outside_spans(80, kSpans, 29), 10);
  EXPECT_EQ(cut_outside_spans(80, kSpans, 69), 50);
}

TEST(ImageSpansTest, ACutBetweenPicturesStays) {
  EXPECT_EQ(cut_outside_spans(80, kSpans, 30), 30);
  EXPECT_EQ(cut_outside_spans(80, kSpans, 10), 10);
  EXPECT_EQ(cut_outside_spans(80, kSpans, 70), 70);
}

}  // namespace
}  // namespace chiliad::stepplan
