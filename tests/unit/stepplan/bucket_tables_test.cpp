#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "chiliad/spec/bucket_tables.h"
#include "chiliad/stepplan/buckets.h"

namespace chiliad::stepplan {
namespace {

using Sides = std::vector<std::pair<int, int>>;

spec::DataOptions kohya(int64_t resolution, int64_t longest) {
  spec::DataOptions options;
  options.buckets = "kohya";
  options.resolution = resolution;
  options.bucket_min = 256;
  options.bucket_max = longest;
  options.bucket_step = 64;
  return options;
}

spec::DataOptions table(const std::string& name) {
  spec::DataOptions options;
  options.buckets = name;
  return options;
}

Sides sides_of(const spec::DataOptions& options) {
  Sides sides;
  const BucketTable buckets(options);
  for (const Bucket bucket : buckets.buckets()) sides.emplace_back(bucket.width, bucket.height);
  return sides;
}

Sides sorted(Sides sides) {
  std::sort(sides.begin(), sides.end());
  return sides;
}

std::pair<int, int> choice(const spec::DataOptions& options, int64_t width, int64_t height) {
  const BucketTable buckets(options);
  const auto found = buckets.assign(width, height);
  if (found.bucket < 0) return {0, 0};
  const Bucket bucket = buckets.buckets()[static_cast<size_t>(found.bucket)];
  return {bucket.width, bucket.height};
}

std::pair<int, int> sides(int width, int height) {
  return {width, height};
}

TEST(BucketTablesTest, NovelaiHasItsNineteen) {
  Sides wanted{{256, 1024}, {320, 1024}, {384, 896}, {384, 960}, {384, 1024},
               {448, 832},  {512, 512},  {512, 704}, {512, 768}, {576, 640}};
  for (size_t i = 0; i < 10; ++i) {
    if (wanted[i].first != wanted[i].second) wanted.emplace_back(wanted[i].second, wanted[i].first);
  }
  EXPECT_EQ(sorted(sides_of(table("novelai"))), sorted(wanted));
}

TEST(BucketTablesTest, KohyaHasSeventeenAt512) {
  EXPECT_EQ(sides_of(kohya(512, 1024)), (Sides{{256, 832},
                                               {256, 896},
                                               {256, 960},
                                               {256, 1024},
                                               {320, 704},
                                               {320, 768},
                                               {384, 640},
                                               {448, 576},
                                               {512, 512},
                                               {576, 448},
                                               {640, 384},
                                               {704, 320},
                                               {768, 320},
                                               {832, 256},
                                               {896, 256},
                                               {960, 256},
                                               {1024, 256}}));
}

TEST(BucketTablesTest, KohyaHasFortyOneAt1024) {
  EXPECT_EQ(sides_of(kohya(1024, 2048)),
            (Sides{{256, 2048}, {320, 2048}, {384, 2048}, {448, 2048}, {512, 1856}, {512, 1920}, {512, 1984},
                   {512, 2048}, {576, 1664}, {576, 1728}, {576, 1792}, {640, 1536}, {640, 1600}, {704, 1408},
                   {704, 1472}, {768, 1280}, {768, 1344}, {832, 1216}, {896, 1152}, {960, 1088}, {1024, 1024},
                   {1088, 960}, {1152, 896}, {1216, 832}, {1280, 768}, {1344, 768}, {1408, 704}, {1472, 704},
                   {1536, 640}, {1600, 640}, {1664, 576}, {1728, 576}, {1792, 576}, {1856, 512}, {1920, 512},
                   {1984, 512}, {2048, 256}, {2048, 320}, {2048, 384}, {2048, 448}, {2048, 512}}));
}

// As published: height, width.
const Sides kPixart512{{256, 1024}, {256, 992}, {256, 960}, {256, 928}, {288, 896}, {288, 864}, {288, 832},
                       {320, 800},  {320, 768}, {352, 736}, {352, 704}, {352, 672}, {384, 672}, {384, 640},
                       {416, 608},  {416, 576}, {448, 576}, {448, 544}, {480, 544}, {480, 512}, {512, 512},
                       {512, 480},  {544, 480}, {544, 448}, {576, 448}, {576, 416}, {608, 416}, {640, 384},
                       {672, 384},  {704, 352}, {736, 352}, {768, 320}, {800, 320}, {832, 288}, {864, 288},
                       {896, 288},  {928, 256}, {960, 256}, {992, 256}, {1024, 256}};

Sides pixart(int scaled_by, int divided_by) {
  Sides wanted;
  for (const auto& [height, width] : kPixart512)
    wanted.emplace_back(width * scaled_by / divided_by, height * scaled_by / divided_by);
  return wanted;
}

TEST(BucketTablesTest, PixartHasFortyOfEachSize) {
  EXPECT_EQ(sides_of(table("pixart-256")), pixart(1, 2));
  EXPECT_EQ(sides_of(table("pixart-512")), pixart(1, 1));
  EXPECT_EQ(sides_of(table("pixart-1024")), pixart(2, 1));
  EXPECT_EQ(sides_of(table("pixart-2048")), pixart(4, 1));
}

TEST(BucketTablesTest, OpenSoraTakesPixartsAndItsOwn) {
  EXPECT_EQ(sides_of(table("opensora-512")), pixart(1, 1));
  EXPECT_EQ(sides_of(table("opensora-720p")), (Sides{{1568, 588},
                                                     {1466, 628},
                                                     {1388, 666},
                                                     {1356, 678},
                                                     {1318, 698},
                                                     {1306, 706},
                                                     {1280, 720},
                                                     {1212, 758},
                                                     {1176, 784},
                                                     {1110, 832},
                                                     {960, 960},
                                                     {832, 1108},
                                                     {784, 1176},
                                                     {720, 1280},
                                                     {698, 1320},
                                                     {680, 1358},
                                                     {666, 1386}}));
  EXPECT_EQ(sides_of(table("opensora-240p")), (Sides{{522, 196},
                                                     {490, 210},
                                                     {462, 222},
                                                     {452, 226},
                                                     {438, 232},
                                                     {436, 236},
                                                     {426, 240},
                                                     {404, 252},
                                                     {393, 262},
                                                     {368, 276},
                                                     {320, 320},
                                                     {278, 370},
                                                     {262, 392},
                                                     {240, 426},
                                                     {232, 440},
                                                     {226, 452},
                                                     {222, 462}}));
  for (const char* name : {"opensora-144p", "opensora-360p", "opensora-480p", "opensora-1080p"})
    EXPECT_EQ(sides_of(table(name)).size(), 17U) << name;
}

TEST(BucketTablesTest, EveryNameIsATable) {
  for (const std::string& name : spec::bucket_table_names())
    EXPECT_FALSE(sides_of(table(name)).empty()) << name;
}

TEST(BucketChoiceTest, NovelaiComparesWidthOverHeight) {
  EXPECT_EQ(choice(table("novelai"), 1920, 1080), sides(832, 448));
  EXPECT_EQ(choice(table("novelai"), 600, 800), sides(512, 704));
}

TEST(BucketChoiceTest, NovelaiRefusesAnErrorAboveFour) {
  EXPECT_EQ(choice(table("novelai"), 7900, 1000), sides(1024, 256));
  EXPECT_TRUE(BucketTable(table("novelai")).assign(9000, 1000).too_far);
}

TEST(BucketChoiceTest, KohyaPrefersAPictureOfABucketsSize) {
  auto options = kohya(1024, 2048);
  EXPECT_EQ(choice(options, 512, 2048), sides(512, 2048));
  EXPECT_EQ(choice(options, 1000, 700), sides(1216, 832));
}

// As sd-scripts gives them with bucket_no_upscale.
TEST(BucketChoiceTest, KohyaOnlyMakesSmallerWhereAsked) {
  auto options = kohya(1024, 2048);
  options.bucket_no_upscale = true;
  EXPECT_EQ(choice(options, 1920, 1080), sides(1344, 768));
  EXPECT_EQ(choice(options, 1000, 700), sides(960, 640));
  EXPECT_EQ(choice(options, 800, 600), sides(768, 576));
  EXPECT_EQ(choice(options, 4000, 1000), sides(2048, 512));
  EXPECT_EQ(choice(options, 1200, 1800), sides(832, 1216));
  EXPECT_EQ(choice(options, 513, 511), sides(512, 448));
  EXPECT_EQ(choice(options, 64, 64), sides(64, 64));
  EXPECT_EQ(choice(options, 5000, 300), sides(3200, 192));
  EXPECT_TRUE(BucketTable(options).assign(63, 500).too_small);
}

// 1.44 is nearer to the key 1.46 of 608 x 416 (1.4615), 1.4185 to 1.38 of 576 x 416 (1.3846).
TEST(BucketChoiceTest, PixartComparesWithRoundedRatios) {
  EXPECT_EQ(choice(table("pixart-512"), 1000, 1440), sides(416, 608));
  EXPECT_EQ(choice(table("pixart-512"), 10000, 14201), sides(416, 608));
  EXPECT_EQ(choice(table("pixart-512"), 10000, 14199), sides(416, 576));
}

TEST(BucketChoiceTest, OpenSoraTakesTheLargestThatThePictureFills) {
  EXPECT_EQ(choice(table("opensora"), 1024, 1024), sides(1024, 1024));
  EXPECT_EQ(choice(table("opensora"), 916, 916), sides(1024, 1024));  // 0.8002 of the pixels
  EXPECT_EQ(choice(table("opensora"), 915, 915), sides(512, 512));
  EXPECT_EQ(choice(table("opensora"), 300, 300), sides(256, 256));
  EXPECT_TRUE(BucketTable(table("opensora")).assign(200, 200).too_small);
  EXPECT_TRUE(BucketTable(table("opensora-512")).assign(300, 300).too_small);
}

TEST(BucketChoiceTest, MayBeChangedForATable) {
  auto options = table("pixart-512");
  options.bucket_choice = "ratio";
  EXPECT_EQ(choice(options, 10000, 14210),
            sides(416, 576));  // below the middle of ln, above that of the ratios
}

// sd-scripts' rule makes 3072 x 3000 pixels 960 x 960, though 1024 x 1024 fits.
TEST(BucketChoiceTest, MostPixelsAreKeptUnderACropBound) {
  auto options = kohya(1024, 2048);
  options.bucket_no_upscale = true;
  EXPECT_EQ(choice(options, 3072, 3000), sides(960, 960));
  options.bucket_choice = "most_pixels";
  EXPECT_EQ(choice(options, 3072, 3000), sides(1024, 1024));
}

TEST(BucketChoiceTest, MostPixelsHoldsItsBound) {
  const std::vector<Bucket> buckets{{640, 640}, {1024, 512}, {900, 600}};
  const auto kept = [&](double crop) {
    return buckets[static_cast<size_t>(most_pixels_bucket(buckets, 3000, 2000, crop))];
  };
  EXPECT_EQ(kept(0.0), (Bucket{900, 600}));
  EXPECT_EQ(kept(0.1), (Bucket{900, 600}));
  EXPECT_EQ(kept(0.25), (Bucket{900, 600}));  // 1024 x 512 are fewer pixels
  const std::vector<Bucket> larger{{900, 600}, {1024, 576}};
  EXPECT_EQ(most_pixels_bucket(larger, 3000, 2000, 0.1), 0);
  EXPECT_EQ(most_pixels_bucket(larger, 3000, 2000, 0.2), 1);
}

TEST(BucketChoiceTest, MostPixelsTakesTheLeastCropWhereAllAreBeyond) {
  const std::vector<Bucket> buckets{{1024, 1024}, {1024, 512}};
  EXPECT_EQ(most_pixels_bucket(buckets, 4000, 1000, 0.1), 1);
}

}  // namespace
}  // namespace chiliad::stepplan
