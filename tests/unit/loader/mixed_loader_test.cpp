#include <gtest/gtest.h>

#include <cstring>

#include "chiliad/loader/loader.h"
#include "tests/support/synthetic_index.h"
#include "tests/unit/loader/made_data.h"

namespace chiliad::loader {
namespace {

/// Two data sets of the same pictures under other numbers: 30 of one, all 60 of another.
class MixedLoaderTest : public ::testing::Test {
 protected:
  MixedLoaderTest() : few_(30), all_(60), index_(index::Index::concatenate({few_.index(), all_.index()})) {
    options_.batch = 8;
    options_.bucket_min = options_.bucket_max = options_.resolution = 32;
    options_.sources.resize(2);
    options_.sources[0].name = "few";
    options_.sources[1].name = "all";
  }

  test::MadeData few_;
  test::MadeData all_;
  index::Index index_;
  spec::DataOptions options_;
};

TEST_F(MixedLoaderTest, EachSampleComesFromItsOwnSource) {
  all_.replace_picture(7, "no picture", false);  // of the second source alone
  const stepplan::Plan plan(index_, options_, 1, test::byte_tokens(index_));
  LoaderOptions options;
  options.pack.max_items = 8;
  options.pack.work = test::transformer_work();
  Loader loading(index_, plan, {}, 0, 20, options);
  int bad = 0;
  std::vector<std::vector<uint8_t>> pixels(90);
  for (int step = 0; step < 20; ++step) {
    const RankStep loaded = loading.next();
    for (const auto& verdict : loaded.verdicts) {
      EXPECT_EQ(verdict.sample, 37);
      ++bad;
    }
    for (const Batch& batch : loaded.slots) {
      const auto bytes = batch.pixels.as<uint8_t>();
      const size_t size = batch.items.empty() ? 0 : bytes.size() / batch.items.size();
      for (size_t i = 0; i < batch.items.size(); ++i) {
        const auto own = bytes.subspan(i * size, size);
        pixels.at(static_cast<size_t>(batch.items[i].sample)).assign(own.begin(), own.end());
      }
    }
  }
  EXPECT_GE(bad, 1);
  int compared = 0;
  for (size_t i = 0; i < 30; ++i) {
    if (i == 7 || pixels[i].empty() || pixels[30 + i].empty()) continue;
    EXPECT_EQ(pixels[i], pixels[30 + i]) << "picture " << i;
    ++compared;
  }
  EXPECT_GT(compared, 15);
}

}  // namespace
}  // namespace chiliad::loader
