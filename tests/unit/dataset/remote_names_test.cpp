#include "chiliad/dataset/remote_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chiliad/base/error.h"
#include "chiliad/dataset/build_tars.h"
#include "chiliad/dataset/verify.h"

namespace chiliad::dataset {
namespace {

TEST(RemoteNamesTest, AFolderIsAllOfIt) {
  const auto source = parse_remote_source("s3://bucket/set/");
  EXPECT_EQ(source.root, "s3://bucket/set");
  EXPECT_TRUE(source.names.empty());
}

TEST(RemoteNamesTest, ATarIsOneObject) {
  const auto source = parse_remote_source("http://host/set/a.tar");
  EXPECT_EQ(source.root, "http://host/set");
  EXPECT_THAT(source.names, ::testing::ElementsAre("a.tar"));
}

TEST(RemoteNamesTest, BracesStandForNumbersOfTheSameWidth) {
  const auto source = parse_remote_source("http://host/a-{08..11}.tar");
  EXPECT_THAT(source.names, ::testing::ElementsAre("a-08.tar", "a-09.tar", "a-10.tar", "a-11.tar"));
}

TEST(RemoteNamesTest, BracesStandForWords) {
  const auto source = parse_remote_source("http://host/{train,test}-{0..1}.tar");
  EXPECT_THAT(source.names, ::testing::ElementsAre("train-0.tar", "train-1.tar", "test-0.tar", "test-1.tar"));
}

TEST(RemoteNamesTest, OtherBracesAreRefused) {
  for (const char* address :
       {"http://host/a-{9..1}.tar", "http://host/a-{1..}.tar", "http://host/a-{x}.tar",
        "http://host/a-{1..2.tar", "http://host/{a,b}/c.tar", "http://host/{0..99999999}.tar"})
    EXPECT_THROW(static_cast<void>(parse_remote_source(address)), InvalidInput) << address;
}

TEST(RemoteNamesTest, VerbsThatReadFilesRefuseAStore) {
  index::Manifest manifest;
  manifest.root = "s3://bucket/set";
  const auto index = index::Index::from_shards(manifest, {});
  EXPECT_THROW(static_cast<void>(verify(index, 1, {})), InvalidInput);
  EXPECT_THROW(static_cast<void>(build_tars(index, "unused", {}, {})), InvalidInput);
}

}  // namespace
}  // namespace chiliad::dataset
