#include "chiliad/report/step_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "chiliad/base/rng.h"
#include "chiliad/text/byte_tokenizer.h"
#include "tests/support/synthetic_index.h"

namespace chiliad::report {
namespace {

using testing::HasSubstr;
using testing::Not;

StepPageOptions options() {
  StepPageOptions options;
  options.title = "cats";
  options.made_at = "now";
  options.decode = [](std::span<const int32_t> ids) { return text::ByteTokenizer::decode(ids); };
  return options;
}

index::Index made_index() {
  return test::synthetic_index({{8, 8, 3}, {8, 8, 3}, {8, 8, 3}});
}

stepplan::Item made_item(int64_t sample) {
  stepplan::Item item;
  item.sample = sample;
  item.caption = static_cast<int32_t>(sample);
  item.draw_key = 7;
  return item;
}

/// Two pictures of 2 x 2 with captions.
loader::Batch picture_batch() {
  loader::Batch batch;
  batch.bucket = {2, 2};
  batch.items = {made_item(0), made_item(1)};
  batch.pixels = HostArray(DType::kU8, Shape{2, 2, 2, 3});
  batch.tokens = HostArray(DType::kI32, Shape{2, 12});
  const std::vector<std::string> captions{"<b>cat</b>", "dog"};
  for (size_t i = 0; i < captions.size(); ++i) {
    const auto ids = text::ByteTokenizer(12).encode(captions[i]);
    std::copy(ids.begin(), ids.end(), batch.tokens.as<int32_t>().begin() + static_cast<ptrdiff_t>(12 * i));
    batch.token_counts.push_back(static_cast<int32_t>(ids.size()));
  }
  return batch;
}

loader::RankStep step_of(loader::Batch batch) {
  loader::RankStep step;
  step.step = 4;
  step.num_items = 2;
  step.predicted_work = 1.0;
  step.slots.push_back(std::move(batch));
  return step;
}

std::string page_of(loader::Batch batch, const StepPageOptions& how = options()) {
  std::vector<loader::RankStep> ranks;
  ranks.push_back(step_of(std::move(batch)));
  return step_page(made_index(), ranks, how);
}

/// A row of one document "abcd" whose first two positions are not supervised.
loader::Batch row_batch() {
  loader::Batch batch;
  batch.items = {made_item(2)};
  batch.cu_seqlens = {0, 4};
  batch.tokens = HostArray(DType::kI32, Shape{4});
  batch.targets = HostArray(DType::kI32, Shape{4});
  const auto ids = text::ByteTokenizer(8).encode("abcd");
  std::copy(ids.begin(), ids.end(), batch.tokens.as<int32_t>().begin());
  const std::vector<int32_t> targets{loader::kNoTarget, loader::kNoTarget, 5, 6};
  std::copy(targets.begin(), targets.end(), batch.targets.as<int32_t>().begin());
  batch.token_counts = {4};
  return batch;
}

TEST(StepPageTest, ShowsPicturesWithTheirCaptions) {
  const auto page = page_of(picture_batch());
  EXPECT_THAT(page, HasSubstr("Slot 0: 2 pictures of 2x2"));
  EXPECT_THAT(page, HasSubstr("data:image/png;base64,"));
  EXPECT_THAT(page, HasSubstr("item1"));
  EXPECT_THAT(page, HasSubstr("3 tokens, en"));
  EXPECT_THAT(page, HasSubstr("<bdi>dog</bdi>"));
}

TEST(StepPageTest, EscapesCaptions) {
  const auto page = page_of(picture_batch());
  EXPECT_THAT(page, HasSubstr("&lt;b&gt;cat&lt;/b&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("<b>cat")));
}

TEST(StepPageTest, MarksDroppedCaptions) {
  auto how = options();
  how.caption_dropout = 1.0;
  EXPECT_THAT(page_of(picture_batch(), how), HasSubstr("caption dropped in this step"));
  how.caption_dropout = 0.0;
  EXPECT_THAT(page_of(picture_batch(), how), Not(HasSubstr("caption dropped in this step")));
}

TEST(StepPageTest, SaysWhyAnItemIsNotUsed) {
  auto batch = picture_batch();
  batch.items[0].weight = batch.items[1].weight = 0.0F;
  std::vector<loader::RankStep> ranks;
  ranks.push_back(step_of(std::move(batch)));
  ranks[0].verdicts.push_back({1, "item1: no JPEG"});
  const auto page = step_page(made_index(), ranks, options());
  EXPECT_THAT(page, HasSubstr("Not used: left out by the journal"));
  EXPECT_THAT(page, HasSubstr("Not used: item1: no JPEG"));
}

TEST(StepPageTest, ColoursSupervisedTokens) {
  const auto page = page_of(row_batch());
  EXPECT_THAT(page, HasSubstr("a row of 1 documents, 4 tokens"));
  EXPECT_THAT(page,
              HasSubstr("<span class=\"no\"><bdi>ab</bdi></span><span class=\"yes\"><bdi>cd</bdi></span>"));
}

TEST(StepPageTest, CountsItemsBeyondTheLimit) {
  auto how = options();
  how.max_items = 1;
  const auto page = page_of(picture_batch(), how);
  EXPECT_THAT(page, HasSubstr("1 more items are not shown"));
  EXPECT_THAT(page, Not(HasSubstr("<bdi>dog</bdi>")));
}

TEST(StepPageTest, ShowsEmptySlotsAndImbalance) {
  std::vector<loader::RankStep> ranks;
  ranks.push_back(step_of(picture_batch()));
  ranks.push_back(step_of({}));
  ranks[1].predicted_work = 0.0;
  const auto page = step_page(made_index(), ranks, options());
  EXPECT_THAT(page, HasSubstr("Slot 0: empty"));
  EXPECT_THAT(page, HasSubstr("2.000 (most over mean"));
}

}  // namespace
}  // namespace chiliad::report
