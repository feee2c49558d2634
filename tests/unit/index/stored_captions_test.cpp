// Sidecars whose captions must be unescaped: the feature bit, the golden file, damage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "chiliad/base/error.h"
#include "chiliad/index/caption_text.h"
#include "chiliad/index/detail/parse.h"
#include "chiliad/index/detail/sidecar_layout.h"
#include "chiliad/io/file.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/index/example_shard.h"

namespace chiliad::index {
namespace {

using ::testing::HasSubstr;

constexpr size_t kFeaturesAt = 24;

class StoredCaptionsTest : public ::testing::Test {
 protected:
  std::vector<std::byte> written(const Shard& shard) const {
    const auto path = folder_.path() / "x.chidx";
    write_sidecar(path, shard);
    return io::read_file(path, 1 << 20);
  }
  static uint64_t features(const std::vector<std::byte>& file) {
    uint64_t bits = 0;
    std::memcpy(&bits, file.data() + kFeaturesAt, sizeof bits);
    return bits;
  }
  static void set_features(std::vector<std::byte>& file, uint64_t bits) {
    std::memcpy(file.data() + kFeaturesAt, &bits, sizeof bits);
    detail::SidecarHeader header;
    std::memcpy(&header, file.data(), sizeof header);
    const size_t checksum_at = sizeof header + header.num_columns * sizeof(detail::ColumnEntry);
    const uint64_t checksum = hash64(std::span(file).first(checksum_at));
    std::memcpy(file.data() + checksum_at, &checksum, sizeof checksum);
  }
  static std::string complaint(std::span<const std::byte> file) {
    try {
      (void)detail::parse_sidecar(file, "x.chidx");
    } catch (const CorruptData& error) {
      return error.what();
    }
    return {};
  }

  test::TempDir folder_;
};

TEST_F(StoredCaptionsTest, IsWhatTheGoldenFileHolds) {
  const auto golden = std::filesystem::path(CHILIAD_TEST_DATA) / "index/sidecar-v1-stored.chidx";
  const auto bytes = written(stored_captions_shard());
  if (std::getenv("CHILIAD_MAKE_GOLDEN") != nullptr) io::write_atomic(golden, bytes);
  EXPECT_EQ(bytes, io::read_file(golden, 1 << 20));
}

TEST_F(StoredCaptionsTest, SetsTheBitWhereItIsNeededOnly) {
  EXPECT_EQ(features(written(stored_captions_shard())), 1U);
  EXPECT_EQ(features(written(example_shard())), 0U);
}

TEST_F(StoredCaptionsTest, ReadsBack) {
  const auto file = written(stored_captions_shard());
  const Shard shard = detail::parse_sidecar(file, "x.chidx");
  EXPECT_EQ(shard.parts[4].media, MediaType::kConversation);
  EXPECT_EQ(shard.captions[1].offset, 24U);
}

TEST_F(StoredCaptionsTest, RefusesTheWrongBit) {
  auto file = written(stored_captions_shard());
  set_features(file, 0);
  EXPECT_THAT(complaint(file), HasSubstr("feature bits are 0x0, expected 0x1"));
  file = written(example_shard());
  set_features(file, 1);
  EXPECT_THAT(complaint(file), HasSubstr("feature bits are 0x1, expected 0x0"));
}

TEST_F(StoredCaptionsTest, RefusesBitsOfLaterVersions) {
  auto file = written(example_shard());
  set_features(file, 2);
  EXPECT_THAT(complaint(file), HasSubstr("later version"));
}

TEST_F(StoredCaptionsTest, FindsEveryChangedByte) {
  const auto whole = written(stored_captions_shard());
  for (size_t i = 0; i < whole.size(); ++i) {
    auto changed = whole;
    changed[i] ^= std::byte{0x10};
    EXPECT_NE(complaint(changed), "") << i;
  }
}

TEST(CaptionTextTest, UnescapesByMediaType) {
  EXPECT_EQ(caption_text(MediaType::kText, "\"a\"").text, "\"a\"");
  EXPECT_EQ(caption_text(MediaType::kJson, R"(" a\n\"b\" ")").text, "a\n\"b\"");
  EXPECT_EQ(caption_text(MediaType::kCsv, R"("a ""b""")").text, "a \"b\"");
  EXPECT_EQ(caption_text(MediaType::kJsonLine, R"({"text": "a"})").text, "a");
  EXPECT_EQ(caption_text(MediaType::kConversation, "{}").text, "{}");
}

}  // namespace
}  // namespace chiliad::index
