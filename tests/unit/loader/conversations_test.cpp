// Conversations with several pictures: from files to rows with tiles.
#include "chiliad/loader/conversations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>

#include "chiliad/dataset/build_index.h"
#include "chiliad/dataset/conversation_columns.h"
#include "chiliad/image/encode.h"
#include "chiliad/io/file.h"
#include "chiliad/loader/loader.h"
#include "chiliad/loader/run_inputs.h"
#include "tests/support/picture_bytes.h"
#include "tests/support/temp_dir.h"

namespace chiliad::loader {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr int kRecords = 40;
constexpr int kPictures = 6;

/// Record i has i % 7 pictures, from picture i on; record 14 has a hundred.
int pictures_of(int i) {
  return i == 14 ? 100 : i % 7;
}

class ConversationsTest : public ::testing::Test {
 protected:
  ConversationsTest() {
    for (int p = 0; p < kPictures; ++p) write_picture(p, 30 + 7 * p, 50 - 6 * p);
    std::string list = "[";
    for (int i = 0; i < kRecords; ++i) {
      std::string names;
      for (int p = 0; p < pictures_of(i); ++p)
        names += std::string(p > 0 ? "," : "") + "\"" + std::to_string((i + p) % kPictures) + ".png\"";
      list += std::string(i > 0 ? ",\n" : "") + "{\"image\": [" + names +
              R"(], "conversations": [{"from": "human", "value": "Look )" + std::to_string(i) +
              R"("}, {"from": "gpt", "value": "I see )" + std::to_string(i) + R"("}]})";
    }
    io::write_atomic(folder_.path() / "data.json", list + "]");
    open("pad");
  }

  void write_picture(int p, int32_t width, int32_t height) const {
    const auto png = image::encode_png(test::sloped_picture(width, height));
    io::write_atomic(folder_.path() / (std::to_string(p) + ".png"),
                     std::string(reinterpret_cast<const char*>(png.data()), png.size()));
  }

  void open(const std::string& fit) {
    static_cast<void>(dataset::build_index(folder_.path() / "data.json", folder_.path() / "index", {}, {}));
    run_ = spec::parse_run_file(
        "version: 1\n", "run.yaml", "run",
        {"data.index=" + (folder_.path() / "index").string(), "data.mode=pack", "data.batch=8",
         "data.sequence_length=800", "data.micro_batch_tokens=800", "model.family=llama",
         "model.mlp_width=64", "model.vocabulary=300", "vision.template=chatml", "vision.side=28",
         "vision.patch=14", "vision.fit=" + fit});
    index_ = std::make_unique<index::Index>(open_index(run_.data));
    inputs_ = open_inputs(run_, *index_);
    static_cast<void>(dataset::build_conversation_columns(*index_, *inputs_.conversations->encoder,
                                                          inputs_.conversations->view, {}));
    plan_ = std::make_unique<stepplan::Plan>(open_plan(run_, *index_, inputs_));
  }

  std::vector<RankStep> steps(int rank = 0, int num_ranks = 1, int threads = 2) {
    auto options = loader_options(run_, inputs_, spec::rates_of(run_.parallel), rank, num_ranks);
    options.num_threads = threads;
    options.tune = false;
    Loader loader(*index_, *plan_, {}, 0, plan_->steps_per_epoch(), std::move(options));
    std::vector<RankStep> found;
    for (int64_t step = 0; step < plan_->steps_per_epoch(); ++step) found.push_back(loader.next());
    return found;
  }

  /// Tiles of picture p, one of `count` in its record.
  std::vector<std::byte> tiles(int p, int64_t count) const {
    const auto bytes = io::read_file(folder_.path() / (std::to_string(p) + ".png"), 1 << 20);
    const auto& view = inputs_.conversations->view;
    const auto size = image::vision_size(view, 30 + 7 * p, 50 - 6 * p, count);
    std::vector<std::byte> slot(static_cast<size_t>(size.tiles * view.tile_bytes()));
    EXPECT_EQ(image::vision_tiles(view, bytes, count, {}, slot), "");
    return slot;
  }

  test::TempDir folder_;
  spec::RunFile run_;
  std::unique_ptr<index::Index> index_;
  RunInputs inputs_;
  std::unique_ptr<stepplan::Plan> plan_;
};

TEST_F(ConversationsTest, ItemsHoldAllPicturesInOrder) {
  std::map<int64_t, int> seen;
  for (const RankStep& step : steps()) {
    EXPECT_TRUE(step.verdicts.empty());
    for (const Batch& batch : step.slots) {
      const auto tokens = batch.tokens.as<int32_t>();
      for (size_t i = 0; i < batch.items.size(); ++i) {
        const auto record = static_cast<int>(batch.items[i].sample);
        const auto& spans = batch.pictures[i];
        ++seen[record];
        ASSERT_EQ(static_cast<int>(spans.size()), pictures_of(record));
        for (size_t p = 0; p < spans.size(); ++p) {
          for (int64_t at = 0; at < spans[p].count; ++at)
            ASSERT_EQ(tokens[static_cast<size_t>(batch.cu_seqlens[i] + spans[p].first + at)],
                      text::kImagePosition);
          const auto wanted = tiles((record + static_cast<int>(p)) % kPictures, pictures_of(record));
          const auto first = (batch.cu_tiles[i] + spans[p].first_tile) * 28 * 28 * 3;
          ASSERT_EQ(std::memcmp(batch.tiles.data() + first, wanted.data(), wanted.size()), 0);
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(kRecords));
}

TEST_F(ConversationsTest, OnlyAnswersHaveTargets) {
  for (const RankStep& step : steps()) {
    for (const Batch& batch : step.slots) {
      const auto targets = batch.targets.as<int32_t>();
      for (size_t i = 0; i < batch.items.size(); ++i) {
        std::string text;
        for (auto at = static_cast<size_t>(batch.cu_seqlens[i]);
             at < static_cast<size_t>(batch.cu_seqlens[i + 1]); ++at)
          if (targets[at] != kNoTarget) text += static_cast<char>(targets[at] - 2);
        EXPECT_EQ(text, "I see " + std::to_string(batch.items[i].sample) + "<|im_end|>");
      }
    }
  }
}

TEST_F(ConversationsTest, ThePlanKnowsPositionsAndTiles) {
  const auto step = plan_->select(0, {});
  for (const auto& item : step.items) {
    const auto count = static_cast<uint32_t>(pictures_of(static_cast<int>(item.sample)));
    EXPECT_EQ(item.num_tiles, count);
    EXPECT_EQ(item.image_tokens, 4 * count);
    EXPECT_GT(item.num_tokens, item.image_tokens);
  }
}

TEST_F(ConversationsTest, TilesOfAnyResolutionAreSummed) {
  open("tiles");
  for (const RankStep& step : steps()) {
    EXPECT_TRUE(step.verdicts.empty());
    for (const Batch& batch : step.slots) {
      for (size_t i = 0; i < batch.items.size(); ++i) {
        if (pictures_of(static_cast<int>(batch.items[i].sample)) != 1) continue;
        ASSERT_EQ(batch.pictures[i].size(), 1U);
        EXPECT_GT(batch.pictures[i][0].num_tiles, 1);
        EXPECT_EQ(batch.pictures[i][0].count, batch.items[i].image_tokens);
        const auto wanted = tiles(static_cast<int>(batch.items[i].sample) % kPictures, 1);
        ASSERT_EQ(
            std::memcmp(batch.tiles.data() + batch.cu_tiles[i] * 28 * 28 * 3, wanted.data(), wanted.size()),
            0);
      }
    }
  }
}

TEST_F(ConversationsTest, RanksAndThreadsChangeNothing) {
  const auto whole = steps();
  for (const int ranks : {2, 3}) {
    std::vector<uint64_t> consumed(whole.size(), 0);
    for (int rank = 0; rank < ranks; ++rank) {
      const auto own = steps(rank, ranks, 1 + rank);
      for (size_t s = 0; s < own.size(); ++s) {
        EXPECT_EQ(own[s].digest, whole[s].digest);
        consumed[s] += own[s].consumed;
      }
    }
    for (size_t s = 0; s < whole.size(); ++s) EXPECT_EQ(consumed[s], whole[s].consumed);
  }
}

TEST_F(ConversationsTest, OneDamagedPictureMakesItsItemsBadWithItsNumber) {
  const fs::path path = folder_.path() / "3.png";
  std::string bytes = io::read_text(path, 1 << 20);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  io::write_atomic(path, bytes);
  int bad = 0;
  for (const RankStep& step : steps()) {
    for (const Verdict& verdict : step.verdicts) {
      EXPECT_THAT(verdict.reason,
                  HasSubstr("data.json:" + std::to_string(verdict.sample + 1) + ": picture "));
      ++bad;
    }
    for (const Batch& batch : step.slots)
      for (size_t i = 0; i < batch.items.size(); ++i)
        EXPECT_EQ(batch.items[i].weight == 0.0F,
                  batch.pictures[i].empty() && pictures_of(static_cast<int>(batch.items[i].sample)) > 0);
  }
  int wanted = 0;
  for (int i = 0; i < kRecords; ++i) {
    bool has = false;
    for (int p = 0; p < pictures_of(i); ++p) has = has || (i + p) % kPictures == 3;
    wanted += has ? 1 : 0;
  }
  EXPECT_EQ(bad, wanted);
}

TEST_F(ConversationsTest, LongOnesAreCutBeforeAPicture) {
  run_.data.sequence_length = 200;
  run_.data.micro_batch_tokens = 400;
  inputs_ = open_inputs(run_, *index_);
  static_cast<void>(dataset::build_conversation_columns(*index_, *inputs_.conversations->encoder,
                                                        inputs_.conversations->view, {}));
  const auto plan = open_plan(run_, *index_, inputs_);
  // Of the record of a hundred pictures no answer is left.
  EXPECT_EQ(plan.coverage().too_short, 1);
  EXPECT_EQ(plan.items_per_epoch(), kRecords - 1);
}

TEST_F(ConversationsTest, WorkIsEvenedOutByComponent) {
  const auto options = pack_options(run_, spec::rates_of(run_.parallel), 2);
  EXPECT_EQ(options.components, (std::vector<std::string>{"vision", "backbone"}));
  stepplan::Item item;
  item.num_tokens = 100;
  item.num_tiles = 3;
  const auto three = options.item_works(item);
  item.num_tiles = 1;
  EXPECT_DOUBLE_EQ(three[0], 3.0 * options.item_works(item)[0]);
  EXPECT_DOUBLE_EQ(three[1], options.item_works(item)[1]);
  EXPECT_GT(three[1], 0.0);
}

}  // namespace
}  // namespace chiliad::loader
