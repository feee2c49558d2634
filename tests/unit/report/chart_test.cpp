#include "chiliad/report/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace chiliad::report {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::vector<double> count_from_1(size_t count) {
  std::vector<double> steps(count);
  std::iota(steps.begin(), steps.end(), 1.0);
  return steps;
}

size_t occurrences(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(ThinOutTest, KeepsFewValuesAsTheyAre) {
  EXPECT_EQ(thin_out({3, 1, 2}, 10), (std::vector<size_t>{0, 1, 2}));
}

TEST(ThinOutTest, KeepsASpikeOfOneStep) {
  std::vector<double> values(100'000, 1.0);
  values[77'777] = 50.0;
  const auto kept = thin_out(values, 100);
  EXPECT_LE(kept.size(), 200U);
  EXPECT_THAT(kept, Contains(77'777U));
}

TEST(ThinOutTest, PrefersNumbers) {
  std::vector<double> values(1000, std::nan(""));
  values[5] = 2.0;
  EXPECT_THAT(thin_out(values, 10), Contains(5U));
}

TEST(ThinOutTest, KeepsTheOrder) {
  std::vector<double> values;
  for (int i = 0; i < 10'000; ++i) values.push_back(std::sin(i));
  const auto kept = thin_out(values, 50);
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
}

TEST(LineChartTest, DrawsOnePath) {
  const auto svg = line_chart(count_from_1(3), {"loss", {3, 2, 1}}, {"Loss", "", false, {}});
  EXPECT_EQ(occurrences(svg, "<path"), 1U);
  EXPECT_THAT(svg, HasSubstr("<figcaption>Loss</figcaption>"));
}

TEST(LineChartTest, AValueThatIsNoNumberIsAGap) {
  const auto svg =
      line_chart(count_from_1(5), {"loss", {3, 2, std::nan(""), 1, INFINITY}}, {"Loss", "", false, {}});
  EXPECT_EQ(occurrences(svg.substr(svg.find("<path")), "M"), 2U);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(LineChartTest, OneValueIsADot) {
  EXPECT_THAT(line_chart({7}, {"loss", {3}}, {"Loss", "", false, {}}), HasSubstr("<circle"));
}

TEST(LineChartTest, NoValuesSayNothing) {
  EXPECT_THAT(line_chart({}, {"loss", {}}, {"Loss", "", false, {}}), HasSubstr("nothing yet"));
  EXPECT_THAT(line_chart({1}, {"loss", {std::nan("")}}, {"Loss", "", false, {}}), HasSubstr("nothing yet"));
}

TEST(LineChartTest, EqualValuesHaveAnAxisToo) {
  const auto svg = line_chart(count_from_1(3), {"lr", {0, 0, 0}}, {"Rate", "", true, {}});
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, HasSubstr("<path"));
}

TEST(LineChartTest, MarksResumesInsideOnly) {
  const auto svg =
      line_chart(count_from_1(10), {"loss", std::vector<double>(10, 1.0)}, {"Loss", "", false, {4, 40}});
  EXPECT_THAT(svg, HasSubstr("resumed at step 4<"));
  EXPECT_THAT(svg, Not(HasSubstr("resumed at step 40")));
}

TEST(LineChartTest, EscapesItsTitle) {
  EXPECT_THAT(line_chart({1}, {"x", {1}}, {"<b>", "", false, {}}), Not(HasSubstr("<b>")));
}

TEST(ShareChartTest, HasAnAreaForEachCurve) {
  const auto svg = share_chart(count_from_1(4), {{"forward", {1, 1, 1, 1}}, {"backward", {2, 2, 2, 2}}},
                               {"Time", "", true, {}});
  EXPECT_EQ(occurrences(svg, "<path"), 2U);
  EXPECT_THAT(svg, HasSubstr("</i>backward</span>"));
}

TEST(ShareChartTest, OneStepIsEnough) {
  const auto svg = share_chart({1}, {{"forward", {1}}, {"other", {0}}}, {"Time", "", true, {}});
  EXPECT_EQ(occurrences(svg, "<path"), 2U);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace chiliad::report
