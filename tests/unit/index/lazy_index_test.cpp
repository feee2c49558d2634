#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chiliad/base/error.h"
#include "chiliad/io/file.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/index/example_shard.h"

namespace chiliad::index {
namespace {

/// An index of four shards of three samples, opened without its sidecars.
class LazyIndexTest : public ::testing::Test {
 protected:
  LazyIndexTest() {
    io::make_folders(folder_.path() / "shards");
    Manifest manifest;
    manifest.layout = "image_text";
    manifest.root = "/data";
    for (int s = 0; s < 4; ++s) {
      Shard shard = example_shard();
      shard.parts[0].checksum = static_cast<uint64_t>(100 + s);
      shard.content = content_digest(shard);
      const std::string name = "00000" + std::to_string(s) + ".chidx";
      write_sidecar(folder_.path() / "shards" / name, shard);
      manifest.shards.push_back({name, shard.content, 3, 340});
    }
    manifest.num_samples = 12;
    manifest.digest = manifest_digest(manifest);
    write_manifest(folder_.path(), manifest);
  }
  [[nodiscard]] Index open(size_t max_shards = 2) const {
    return Index::open(folder_.path(), {.eager_samples = 0, .max_shards = max_shards});
  }

  test::TempDir folder_;
};

TEST_F(LazyIndexTest, OpensWithoutReadingSidecars) {
  io::remove_file(folder_.path() / "shards" / "000002.chidx");
  const Index index = open();
  EXPECT_FALSE(index.is_loaded());
  EXPECT_EQ(index.image_part(3)->checksum, 101U);
  EXPECT_THROW((void)index.shard(2), InvalidInput);
}

TEST_F(LazyIndexTest, KeepsTheShardsUsedLast) {
  const Index index = open(2);
  const std::weak_ptr<const Shard> first = index.shard(0);
  (void)index.shard(1);
  EXPECT_FALSE(first.expired());
  (void)index.shard(2);
  EXPECT_TRUE(first.expired());
}

TEST_F(LazyIndexTest, AShardInUseOutlivesTheOthers) {
  const Index index = open(1);
  const auto part = index.image_part(0);
  for (uint32_t s = 1; s < 4; ++s) (void)index.shard(s);
  EXPECT_EQ(part->checksum, 100U);
}

TEST_F(LazyIndexTest, NamesASidecarOfOtherContentWhenItIsRead) {
  write_sidecar(folder_.path() / "shards" / "000001.chidx", example_shard());
  const Index index = open();
  EXPECT_THAT([&] { (void)index.shard(1); },
              ::testing::ThrowsMessage<CorruptData>(::testing::HasSubstr("as in manifest.json")));
}

TEST_F(LazyIndexTest, LoadsAllForWhoGoesThroughAll) {
  const Index index = open(1);
  EXPECT_EQ(index.shards().size(), 4U);
  EXPECT_TRUE(index.is_loaded());
}

TEST_F(LazyIndexTest, PartsInARowAreNumberedThrough) {
  const Index one = open();
  const Index both = Index::concatenate({one, Index::open(folder_.path())});
  EXPECT_EQ(both.num_samples(), 24);
  EXPECT_EQ(both.num_shards(), 8U);
  EXPECT_EQ(both.key(13), "b");
  EXPECT_EQ(both.image_part(15)->checksum, 101U);
  EXPECT_EQ(both.members()[1].first_sample, 12);
  EXPECT_EQ(both.members()[1].digest, one.manifest().digest);
  EXPECT_EQ(both.folder_of(5), folder_.path());
  EXPECT_EQ(both.part_path(*both.shard(5), *both.image_part(15)), std::filesystem::path("/data/a/\xE9.png"));
  EXPECT_NE(both.manifest().digest, one.manifest().digest);
}

}  // namespace
}  // namespace chiliad::index
