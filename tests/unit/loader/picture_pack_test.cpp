// The loader in mode pack on latents: pictures of any shapes one after another.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "chiliad/loader/loader.h"
#include "chiliad/loader/run_inputs.h"
#include "tests/support/latent_columns.h"
#include "tests/support/latent_run.h"
#include "tests/support/picture_set.h"
#include "tests/support/temp_dir.h"

namespace chiliad::loader {
namespace {

/// What an item is in a batch.
struct Loaded {
  std::vector<std::byte> latents;
  std::vector<std::byte> text;
  float weight = 0.0F;
  bool operator==(const Loaded&) const = default;
};

class PicturePackTest : public testing::Test {
 protected:
  PicturePackTest() {
    test::write_pictures(folder_.path() / "pictures", 20);
    test::index_pictures(folder_.path() / "pictures", folder_.path() / "index");
    test::write_text_encoder(folder_.path() / "text");
    test::write_autoencoder(folder_.path() / "vae");
    index_ = std::make_unique<index::Index>(index::Index::open(folder_.path() / "index"));
    test::write_latent_columns(file("bucket"), *index_);
  }

  [[nodiscard]] spec::RunFile file(const std::string& mode) const {
    auto made =
        spec::parse_run_file(test::latent_run_file("pixart", folder_.path(), 4), "run.yaml", "run", {});
    made.data.mode = mode;
    made.data.micro_batch_tokens = 40;
    return made;
  }

  [[nodiscard]] RankStep step(const std::string& mode, const stepplan::Journal& journal = {}) const {
    const auto run = file(mode);
    const auto inputs = open_inputs(run, *index_);
    const auto plan = open_plan(run, *index_, inputs);
    Loader loader(*index_, plan, journal, 0, 1, loader_options(run, inputs, {}, 0, 1));
    return loader.next();
  }

  test::TempDir folder_;
  std::unique_ptr<index::Index> index_;
};

std::vector<std::byte> part(const HostArray& array, size_t first, size_t count) {
  const auto bytes = array.bytes().subspan(first, count);
  return {bytes.begin(), bytes.end()};
}

/// By sample; captions without padding.
std::map<int64_t, Loaded> items_of(const RankStep& step) {
  std::map<int64_t, Loaded> items;
  for (const Batch& batch : step.slots) {
    const size_t width = static_cast<size_t>(batch.text.shape()[-1 + batch.text.shape().rank()]) * 4;
    for (size_t i = 0; i < batch.items.size(); ++i) {
      const auto tokens = static_cast<size_t>(batch.token_counts[i]);
      Loaded& item = items[batch.items[i].sample];
      item.weight = batch.items[i].weight;
      if (batch.packs_pictures()) {
        const auto first = static_cast<size_t>(batch.cu_latents[i]) * 4;
        item.latents = part(batch.latents, first, static_cast<size_t>(batch.cu_latents[i + 1]) * 4 - first);
        item.text = part(batch.text, static_cast<size_t>(batch.cu_text[i]) * width, tokens * width);
      } else {
        const size_t bytes = batch.latents.bytes().size() / batch.items.size();
        const size_t rows = batch.text.bytes().size() / batch.items.size();
        item.latents = part(batch.latents, i * bytes, bytes);
        item.text = part(batch.text, i * rows, tokens * width);
      }
    }
  }
  return items;
}

TEST_F(PicturePackTest, ItemsAreThoseOfBuckets) {
  EXPECT_TRUE(items_of(step("pack")) == items_of(step("bucket")));
}

TEST_F(PicturePackTest, NothingIsPadded) {
  for (const Batch& batch : step("pack").slots) {
    int64_t values = 0;
    int64_t tokens = 0;
    for (size_t i = 0; i < batch.items.size(); ++i) {
      values += int64_t{4} * (batch.shapes[i].width / 4) * (batch.shapes[i].height / 4);
      tokens += batch.items[i].num_tokens;
    }
    EXPECT_EQ(batch.latents.count(), values);
    EXPECT_EQ(batch.text.shape()[0], tokens);
  }
}

TEST_F(PicturePackTest, ShapesLieTogether) {
  for (const Batch& batch : step("pack").slots) {
    std::vector<stepplan::Bucket> runs = batch.shapes;
    runs.erase(std::unique(runs.begin(), runs.end()), runs.end());
    std::sort(runs.begin(), runs.end());
    EXPECT_EQ(std::adjacent_find(runs.begin(), runs.end()), runs.end());
  }
}

TEST_F(PicturePackTest, BadItemsKeepTheirPlace) {
  const auto before = items_of(step("pack"));
  stepplan::Journal journal;
  journal.add({0, before.begin()->first, "seen"});
  const auto after = items_of(step("pack", journal));
  const Loaded& bad = after.at(before.begin()->first);
  EXPECT_EQ(bad.weight, 0.0F);
  EXPECT_EQ(bad.latents, std::vector<std::byte>(before.begin()->second.latents.size(), std::byte{0}));
  EXPECT_EQ(after.size(), before.size());
}

}  // namespace
}  // namespace chiliad::loader
