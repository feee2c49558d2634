#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "chiliad/base/error.h"
#include "chiliad/index/detail/parse.h"
#include "chiliad/io/file.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/index/example_shard.h"

namespace chiliad::index {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// What reading `bytes` says: the CorruptData message, or "" if it takes them.
std::string complaint(std::span<const std::byte> bytes) {
  try {
    (void)detail::parse_sidecar(bytes, "x.chidx");
  } catch (const CorruptData& error) {
    return error.what();
  }
  return {};
}

class SidecarTest : public ::testing::Test {
 protected:
  SidecarTest() {
    write_sidecar(path_, example_shard());
    bytes_ = io::read_file(path_, 1 << 20);
  }

  /// Writes `shard` with right checksums and tries to read it.
  std::string complaint_about(Shard shard) {
    shard.content = content_digest(shard);
    write_sidecar(path_, shard);
    return complaint(io::read_file(path_, 1 << 20));
  }

  test::TempDir folder_;
  std::filesystem::path path_ = folder_.path() / "x.chidx";
  std::vector<std::byte> bytes_;
};

TEST_F(SidecarTest, KeepsSamplesAndKeys) {
  const Shard shard = read_sidecar(path_);
  const Shard expected = example_shard();
  EXPECT_EQ(shard.keys, expected.keys);
  ASSERT_EQ(shard.samples.size(), 3U);
  EXPECT_EQ(shard.samples[2].flags, expected.samples[2].flags);
  EXPECT_EQ(shard.samples[1].key_hash, expected.samples[1].key_hash);
}

TEST_F(SidecarTest, KeepsPartsAndFiles) {
  const Shard shard = read_sidecar(path_);
  ASSERT_EQ(shard.parts.size(), 4U);
  EXPECT_EQ(shard.parts[0].orientation, 6);
  EXPECT_EQ(shard.parts[0].height, 48U);
  EXPECT_EQ(shard.files[0].path, "a/\xE9.png");
  EXPECT_EQ(shard.files[0].mtime_ns, 1'700'000'000'123'456'789);
}

TEST_F(SidecarTest, WritesTheSameBytesAgain) {
  write_sidecar(folder_.path() / "again", read_sidecar(path_));
  EXPECT_EQ(io::read_file(folder_.path() / "again", 1 << 20), bytes_);
}

TEST_F(SidecarTest, KeepsAnEmptyShard) {
  Shard empty;
  empty.content = content_digest(empty);
  write_sidecar(path_, empty);
  EXPECT_TRUE(read_sidecar(path_).samples.empty());
}

TEST_F(SidecarTest, FindsEveryFlippedBit) {
  std::vector<size_t> unseen;
  for (size_t bit = 0; bit < bytes_.size() * 8; ++bit) {
    auto damaged = bytes_;
    damaged[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    if (complaint(damaged).empty()) unseen.push_back(bit);
  }
  EXPECT_TRUE(unseen.empty()) << unseen.size() << " flipped bits pass, the first is bit " << unseen.front();
}

TEST_F(SidecarTest, FindsEveryTruncation) {
  for (size_t size = 0; size < bytes_.size(); ++size) {
    ASSERT_NE(complaint(std::span(bytes_).first(size)), "") << size << " of " << bytes_.size() << " bytes";
  }
}

TEST_F(SidecarTest, FindsExtraBytes) {
  bytes_.push_back(std::byte{0});
  EXPECT_THAT(complaint(bytes_), HasSubstr("header: file has"));
}

TEST_F(SidecarTest, NamesFileAndSectionOfDamage) {
  const size_t last_key = bytes_.size() - 8;
  bytes_[last_key] ^= std::byte{1};
  EXPECT_THAT(complaint(bytes_), AllOf(HasSubstr("x.chidx"), HasSubstr("keys: checksum is wrong")));
}

TEST_F(SidecarTest, NamesAnUnknownVersion) {
  bytes_[8] = std::byte{9};
  EXPECT_THAT(complaint(bytes_), HasSubstr("format version 9, expected 1"));
}

TEST_F(SidecarTest, ChecksCountsAgainstTheFileBeforeAllocating) {
  const uint64_t huge = 1ULL << 60;
  std::memcpy(bytes_.data() + 56, &huge, sizeof huge);  // num_samples
  uint32_t num_columns = 0;
  std::memcpy(&num_columns, bytes_.data() + 12, sizeof num_columns);
  const size_t checksum_at = 88 + num_columns * 32;
  const uint64_t checksum = hash64(std::span<const std::byte>(bytes_).first(checksum_at));
  std::memcpy(bytes_.data() + checksum_at, &checksum, sizeof checksum);
  EXPECT_THAT(complaint(bytes_), HasSubstr("does not fit the file"));
}

TEST_F(SidecarTest, RefusesPartsBeyondTheirFile) {
  Shard shard = example_shard();
  shard.parts[3].offset = 201;
  EXPECT_THAT(complaint_about(shard), HasSubstr("parts.offset: row 3"));
}

TEST_F(SidecarTest, RefusesPartsOfAnUnknownFile) {
  Shard shard = example_shard();
  shard.parts[3].file = 2;
  EXPECT_THAT(complaint_about(shard), HasSubstr("parts.file: row 3"));
}

TEST_F(SidecarTest, RefusesRunsThatLeaveTheParts) {
  Shard shard = example_shard();
  shard.samples[2].num_parts = 2;
  shard.parts.reserve(8);  // the digest of the test reads one row past the end
  shard.parts.push_back({});
  shard.content = content_digest(shard);
  shard.parts.pop_back();
  write_sidecar(path_, shard);
  EXPECT_THAT(complaint(io::read_file(path_, 1 << 20)), HasSubstr("samples.num_parts: row 2"));
}

TEST_F(SidecarTest, RefusesACaptionBeyondItsPart) {
  Shard shard = example_shard();
  shard.captions[1].length = 21;
  EXPECT_THAT(complaint_about(shard), HasSubstr("captions.length: row 1"));
}

TEST_F(SidecarTest, RefusesACaptionOfAnotherSample) {
  Shard shard = example_shard();
  shard.captions[1].part = 2;
  EXPECT_THAT(complaint_about(shard), HasSubstr("captions.part: row 1"));
}

TEST_F(SidecarTest, RefusesBlocksThatDoNotCoverTheSamples) {
  Shard shard = example_shard();
  shard.blocks.pop_back();
  EXPECT_THAT(complaint_about(shard), HasSubstr("blocks.num_samples"));
}

TEST_F(SidecarTest, RefusesADigestThatIsNotOfTheColumns) {
  Shard shard = example_shard();
  shard.content.low ^= 1;
  write_sidecar(path_, shard);
  EXPECT_THAT(complaint(io::read_file(path_, 1 << 20)), HasSubstr("content digest"));
}

TEST(SidecarGoldenTest, ReadsVersionOne) {
  const auto path = std::filesystem::path(CHILIAD_TEST_DATA) / "index" / "sidecar-v1.chidx";
  EXPECT_EQ(read_sidecar(path).content, example_shard().content);
}

TEST(SidecarGoldenTest, WritesVersionOneByteForByte) {
  const test::TempDir folder;
  write_sidecar(folder.path() / "x", example_shard());
  const auto golden = std::filesystem::path(CHILIAD_TEST_DATA) / "index" / "sidecar-v1.chidx";
  EXPECT_EQ(io::read_file(folder.path() / "x", 1 << 20), io::read_file(golden, 1 << 20));
}

TEST(ContentDigestTest, IgnoresWhereBytesLie) {
  Shard moved = example_shard();
  moved.files[0] = {"elsewhere.tar", 9000, 5};
  moved.parts[2].offset = 4000;
  EXPECT_EQ(content_digest(moved), example_shard().content);
}

TEST(ContentDigestTest, SeesAChangedChecksum) {
  Shard changed = example_shard();
  changed.parts[1].checksum ^= 1;
  EXPECT_NE(content_digest(changed), example_shard().content);
}

}  // namespace
}  // namespace chiliad::index
