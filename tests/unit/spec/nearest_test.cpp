#include "chiliad/spec/nearest.h"

#include <gtest/gtest.h>

namespace chiliad::spec {
namespace {

TEST(NearestTest, CountsEachKindOfEditOnce) {
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("train", "trian"), 1);
  EXPECT_EQ(edit_distance("train", "rain"), 1);
  EXPECT_EQ(edit_distance("train", "brain"), 1);
  EXPECT_EQ(edit_distance("train", "trains"), 1);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
}

TEST(NearestTest, FindsTheNearest) {
  EXPECT_EQ(nearest_name("stps", {"seed", "steps", "stop"}), "steps");
}

TEST(NearestTest, FarNamesGetNoSuggestion) {
  EXPECT_EQ(nearest_name("colour", {"seed", "steps"}), std::nullopt);
}

TEST(NearestTest, MessageListsNamesWhereNoneIsNear) {
  EXPECT_EQ(did_you_mean("colour", {"seed", "steps"}), "Known: seed, steps.");
  EXPECT_EQ(did_you_mean("sed", {"seed", "steps"}), "Did you mean seed?");
}

}  // namespace
}  // namespace chiliad::spec
