#include "chiliad/report/quarantine.h"
#include "chiliad/base/json_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "chiliad/base/error.h"
#include "chiliad/base/host_array.h"
#include "chiliad/image/encode.h"
#include "chiliad/io/file.h"
#include "tests/support/picture_set.h"
#include "tests/support/temp_dir.h"

namespace chiliad::report {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

/// Eight pictures; of number 3 a bit is flipped, number 5 is gone, the rest is good.
class QuarantineTest : public testing::Test {
 protected:
  QuarantineTest() {
    test::write_pictures(folder_.path() / "pictures", 8);
    test::index_pictures(folder_.path() / "pictures", folder_.path() / "index");
    index_.emplace(index::Index::open(folder_.path() / "index"));
    test::flip_bit(picture(3));
    std::filesystem::remove(picture(5));
    for (const int64_t number : {3, 5, 6}) {
      const int64_t sample = sample_of(number);
      journal_.add({7, sample, index_->key(sample) + ": x.png: checksum: expected 1, got 2", "yesterday"});
    }
  }

  std::filesystem::path picture(int64_t number) const {
    return folder_.path() / "pictures" / (test::picture_name(number) + ".png");
  }
  int64_t sample_of(int64_t number) const {
    for (int64_t sample = 0; sample < index_->num_samples(); ++sample) {
      if (index_->key(sample).find(test::picture_name(number)) != std::string::npos) return sample;
    }
    throw std::runtime_error("no such picture");
  }
  QuarantinedItem found(int64_t number) const {
    for (auto& item : examine(journal_, *index_, {})) {
      if (item.amendment.sample == sample_of(number)) return item;
    }
    throw std::runtime_error("not in quarantine");
  }

  test::TempDir folder_;
  std::optional<index::Index> index_;
  stepplan::Journal journal_;
};

TEST_F(QuarantineTest, WrongBytesAreStillBad) {
  const auto item = found(3);
  EXPECT_EQ(item.state, ItemState::kBad);
  EXPECT_THAT(item.now, HasSubstr("checksum: expected"));
  EXPECT_THAT(item.file, HasSubstr(test::picture_name(3) + ".png"));
  EXPECT_EQ(item.first_byte, 0U);
  EXPECT_EQ(item.end_byte, std::filesystem::file_size(picture(3)));
}

TEST_F(QuarantineTest, AMissingFileIsUnavailable) {
  const auto item = found(5);
  EXPECT_EQ(item.state, ItemState::kUnavailable);
  EXPECT_TRUE(item.thumb.empty());
}

TEST_F(QuarantineTest, WhatIsGoodNowIsSaidSo) {
  const auto item = found(6);
  EXPECT_EQ(item.state, ItemState::kGood);
  EXPECT_EQ(item.now, "");
  EXPECT_FALSE(item.thumb.empty());
  EXPECT_FALSE(item.is_partial);
}

TEST(PartialPictureTest, TheUpperPartOfATruncatedJpegIsShown) {
  const test::TempDir folder;
  const auto path = folder.path() / "pictures" / "slope.jpg";
  std::filesystem::create_directories(path.parent_path());
  HostArray picture(DType::kU8, Shape{256, 256, 3});
  for (size_t i = 0; i < picture.bytes().size(); ++i)
    picture.bytes()[i] = std::byte{static_cast<uint8_t>(60 + i / 5000 + i * i % 13)};
  io::write_atomic(path, image::encode_jpeg(picture, 85));
  std::ofstream(folder.path() / "pictures" / "slope.txt") << "a slope";
  test::index_pictures(folder.path() / "pictures", folder.path() / "index");
  const auto index = index::Index::open(folder.path() / "index");
  std::filesystem::resize_file(path, std::filesystem::file_size(path) * 2 / 3);
  stepplan::Journal journal;
  journal.add({1, 0, "slope: slope.jpg: ends at byte 1, expected 2 bytes from 0"});
  const auto items = examine(journal, index, {});
  EXPECT_EQ(items.at(0).state, ItemState::kBad);
  EXPECT_TRUE(items.at(0).is_partial);
  EXPECT_FALSE(items.at(0).thumb.empty());
}

TEST_F(QuarantineTest, LooksAtWhatElseBelongsToASample) {
  QuarantineOptions options;
  options.check_more = [](int64_t) { return "latents: gone"; };
  for (const auto& item : examine(journal_, *index_, options)) EXPECT_NE(item.state, ItemState::kGood);
}

TEST_F(QuarantineTest, AnotherIndexIsRefused) {
  journal_.add({1, 100, "k: picture: no"});
  EXPECT_THAT([&] { (void)examine(journal_, *index_, {}); },
              ThrowsMessage<InvalidInput>(HasSubstr("expected samples of an index of 8, got 100")));
}

TEST_F(QuarantineTest, ThePageNeedsNothingElseAndNamesEverything) {
  const std::string page = quarantine_page(examine(journal_, *index_, {}), {"cats", "now"});
  EXPECT_THAT(page, HasSubstr("3 items were found bad and left out; 1 of them are good now."));
  EXPECT_THAT(page, HasSubstr("data:image/png;base64,"));
  EXPECT_THAT(page, HasSubstr("left out from step 7, found yesterday"));
  EXPECT_THAT(page, Not(HasSubstr("http://")));
}

TEST_F(QuarantineTest, TheJsonCountsByReason) {
  const auto json = parse_json<nlohmann::json>(quarantine_json(examine(journal_, *index_, {}), "x.html"));
  EXPECT_EQ(json.at("by_reason").at("checksum").at("found"), 3);
  EXPECT_EQ(json.at("by_reason").at("checksum").at("good"), 1);
  EXPECT_EQ(json.at("found").at(0).at("now"), "bad");
}

}  // namespace
}  // namespace chiliad::report
