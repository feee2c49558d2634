#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chiliad/base/error.h"
#include "chiliad/index/detail/parse.h"
#include "chiliad/io/file.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/index/example_shard.h"

namespace chiliad::index {
namespace {

using ::testing::HasSubstr;

Manifest example_manifest() {
  Manifest manifest;
  manifest.layout = "image_text";
  manifest.root = "/data/100%/\xE9";
  manifest.shards = {{"000000.chidx", example_shard().content, 3, 340}};
  manifest.num_samples = 3;
  manifest.num_bad = 2;
  manifest.digest = manifest_digest(manifest);
  return manifest;
}

/// Without the fsyncs of write_atomic: the tests write thousands of damaged files.
void put_bytes(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  io::File file = io::File::create(path);
  file.write(bytes);
  file.close();
}

template <typename Kind, typename Action>
std::string complaint(const Action& action) {
  try {
    action();
  } catch (const Kind& error) {
    return error.what();
  }
  return {};
}

class IndexFolderTest : public ::testing::Test {
 protected:
  IndexFolderTest() {
    io::make_folders(folder_.path() / "shards");
    write_sidecar(sidecar_, example_shard());
    write_manifest(folder_.path(), example_manifest());
    text_ = io::read_text(folder_.path() / "manifest.json", 1 << 20);
  }
  void put(const std::string& text) {
    put_bytes(folder_.path() / "manifest.json", std::as_bytes(std::span(text)));
  }
  static std::string complaint_about(const std::string& text) {
    return complaint<CorruptData>([&] { (void)detail::parse_manifest(text, "manifest.json"); });
  }

  test::TempDir folder_;
  std::filesystem::path sidecar_ = folder_.path() / "shards" / "000000.chidx";
  std::string text_;
};

TEST_F(IndexFolderTest, KeepsARootThatIsNotUtf8) {
  EXPECT_EQ(read_manifest(folder_.path()).root, example_manifest().root);
}

TEST_F(IndexFolderTest, FindsEveryFlippedBitButInTheRoot) {
  const size_t root_at = text_.find("/data/");
  const size_t root_end = text_.find('"', root_at);
  for (size_t bit = 0; bit < text_.size() * 8; ++bit) {
    if (bit / 8 >= root_at && bit / 8 < root_end) continue;
    std::string damaged = text_;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    ASSERT_NE(complaint_about(damaged), "") << "bit " << bit << " of\n" << damaged;
  }
}

TEST_F(IndexFolderTest, FindsEveryTruncation) {
  for (size_t size = 0; size < text_.size(); ++size) {
    ASSERT_NE(complaint_about(text_.substr(0, size)), "") << size << " bytes";
  }
}

TEST_F(IndexFolderTest, LetsTheRootBeEdited) {
  std::string moved = text_;
  moved.replace(moved.find("/data/"), 6, "/mnt/");
  EXPECT_EQ(detail::parse_manifest(moved, "manifest.json").root, "/mnt/100%/\xE9");
}

TEST_F(IndexFolderTest, NamesAnUnknownVersion) {
  std::string newer = text_;
  newer.replace(newer.find("\"version\": 1"), 12, "\"version\": 7");
  EXPECT_THAT(complaint_about(newer), HasSubstr("version: expected 1, got 7"));
}

TEST_F(IndexFolderTest, SaysHowToMakeAMissingIndex) {
  const test::TempDir empty;
  EXPECT_THAT(complaint<InvalidInput>([&] { (void)Index::open(empty.path()); }),
              HasSubstr("chiliad data index"));
}

TEST_F(IndexFolderTest, OpensAndLocatesSamples) {
  const Index index = Index::open(folder_.path());
  EXPECT_EQ(index.locate(2).sample, 2U);
  EXPECT_EQ(index.key(1), "b");
}

TEST_F(IndexFolderTest, FindsTheImagePart) {
  const Index index = Index::open(folder_.path());
  ASSERT_NE(index.image_part(1), nullptr);
  EXPECT_EQ(index.image_part(1)->checksum, 13U);
}

TEST_F(IndexFolderTest, RefusesASidecarOfOtherContent) {
  Shard other = example_shard();
  other.parts[0].checksum = 99;
  other.content = content_digest(other);
  write_sidecar(sidecar_, other);
  EXPECT_THAT(complaint<CorruptData>([&] { (void)Index::open(folder_.path()); }),
              HasSubstr("as in manifest.json"));
}

TEST(ManifestGoldenTest, WritesVersionOneByteForByte) {
  const test::TempDir folder;
  write_manifest(folder.path(), example_manifest());
  const auto golden = std::filesystem::path(CHILIAD_TEST_DATA) / "index" / "manifest-v1";
  EXPECT_EQ(io::read_text(folder.path() / "manifest.json", 1 << 20),
            io::read_text(golden / "manifest.json", 1 << 20));
}

TEST(ManifestGoldenTest, ReadsVersionOne) {
  const auto golden = std::filesystem::path(CHILIAD_TEST_DATA) / "index" / "manifest-v1";
  EXPECT_EQ(read_manifest(golden).digest, example_manifest().digest);
}

TEST(TokenColumnTest, KeepsTheCounts) {
  const test::TempDir folder;
  write_token_column(folder.path() / "x", {{3, 1, 4}});
  EXPECT_EQ(read_token_column(folder.path() / "x", 3).caption_tokens, (std::vector<uint32_t>{3, 1, 4}));
}

TEST(TokenColumnTest, FindsEveryFlippedBit) {
  const test::TempDir folder;
  const auto path = folder.path() / "x";
  write_token_column(path, {{3, 1, 4}});
  const auto bytes = io::read_file(path, 1 << 20);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    auto damaged = bytes;
    damaged[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    put_bytes(path, damaged);
    ASSERT_THROW((void)read_token_column(path, 3), CorruptData) << "bit " << bit;
  }
}

TEST(TokenColumnTest, RefusesAnotherNumberOfCaptions) {
  const test::TempDir folder;
  write_token_column(folder.path() / "x", {{3, 1, 4}});
  EXPECT_THROW((void)read_token_column(folder.path() / "x", 4), CorruptData);
}

TEST(TokenColumnTest, ReadsVersionOne) {
  const auto golden = std::filesystem::path(CHILIAD_TEST_DATA) / "index" / "tokens-v1.chtok";
  EXPECT_EQ(read_token_column(golden, 3).caption_tokens, (std::vector<uint32_t>{3, 1, 4}));
}

TEST(LanguageTest, PacksLettersLittleEndian) {
  EXPECT_EQ(language_code("en"), 0x6E65U);
}

TEST(LanguageTest, RefusesWhatIsNoPlainCode) {
  EXPECT_EQ(language_code("e_"), 0U);
}

TEST(LanguageTest, NamesComeBack) {
  EXPECT_EQ(language_name(language_code("son")), "son");
}

}  // namespace
}  // namespace chiliad::index
