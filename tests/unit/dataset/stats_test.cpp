#include "chiliad/dataset/stats.h"
#include "chiliad/base/json_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "chiliad/dataset/build_index.h"
#include "tests/unit/dataset/source_tree.h"

namespace chiliad::dataset {
namespace {

class StatsTest : public ::testing::Test {
 protected:
  StatsTest() {
    tree_.add_picture("a.png", 40, 40);
    tree_.add("a.txt", "four\nde.utf8=Fuenf!\n");
    tree_.add_picture("b.png", 300, 100);
    tree_.add("b.txt", "a longer one\n");
    tree_.add("c.png", "rubbish");
    (void)build_index(tree_.source(), tree_.out(), {}, {});
    stats_ = compute_stats(index::Index::open(tree_.out()));
  }

  static int64_t count_at(const std::vector<Bin>& bins, double value) {
    for (const Bin& bin : bins) {
      if (value >= bin.low && value < bin.high) return bin.count;
    }
    return -1;
  }

  SourceTree tree_;
  Stats stats_;
};

TEST_F(StatsTest, CountsSamplesAndWhatTheyLack) {
  EXPECT_EQ(stats_.num_samples, 3);
  EXPECT_EQ(stats_.num_bad_images, 1);
  EXPECT_EQ(stats_.num_no_caption, 1);
}

TEST_F(StatsTest, CountsCaptionsByLanguage) {
  EXPECT_EQ(stats_.captions_by_language, (std::map<std::string, int64_t>{{"de", 1}, {"en", 2}}));
}

TEST_F(StatsTest, SortsPicturesByShape) {
  EXPECT_EQ(count_at(stats_.aspect_ratios, 1.0), 1);
  EXPECT_EQ(count_at(stats_.aspect_ratios, 3.0), 1);
}

TEST_F(StatsTest, SortsPicturesBySize) {
  EXPECT_EQ(count_at(stats_.sizes, 40), 1);
  EXPECT_EQ(count_at(stats_.sizes, 173), 1);
}

TEST_F(StatsTest, GivesNearestRankPercentiles) {
  EXPECT_THAT(stats_.caption_bytes, ::testing::ElementsAre(4, 4, 6, 12, 12, 12, 12));
}

TEST_F(StatsTest, WritesJson) {
  EXPECT_EQ(parse_json<nlohmann::json>(to_json(stats_)).at("captions_by_language").at("en"), 2);
}

TEST_F(StatsTest, WritesATable) {
  EXPECT_THAT(to_table(stats_), ::testing::HasSubstr("3 samples in 1 shards"));
}

}  // namespace
}  // namespace chiliad::dataset
