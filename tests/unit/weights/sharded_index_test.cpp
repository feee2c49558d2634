#include "chiliad/weights/sharded_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "chiliad/base/error.h"
#include "tests/support/temp_dir.h"

namespace chiliad::weights {
namespace {

using testing::HasSubstr;

class ShardedWeightsTest : public testing::Test {
 protected:
  void SetUp() override {
    write_shard("one.safetensors", "a", "1234");
    write_shard("two.safetensors", "b", "56");
  }
  void write_shard(const std::string& file_name, const std::string& tensor, const std::string& data) {
    auto file = io::File::create(dir_.path() / file_name);
    const auto bytes = std::as_bytes(std::span(data));
    const std::vector<TensorBytes> tensors{
        {{tensor, DType::kU8, {static_cast<int64_t>(data.size())}}, bytes}};
    write_safetensors(file, tensors, {});
    file.close();
  }
  [[nodiscard]] ShardedWeights open(const std::string& index) const {
    const auto path = dir_.path() / "model.safetensors.index.json";
    io::write_atomic(path, index);
    return ShardedWeights::open(path);
  }
  [[nodiscard]] std::string error(const std::string& index) const {
    try {
      (void)open(index);
    } catch (const CorruptData& corrupt) {
      return corrupt.what();
    }
    return "no error";
  }

  test::TempDir dir_;
};

TEST_F(ShardedWeightsTest, FindsEachTensorInItsShard) {
  const auto weights =
      open(R"({"metadata":{"total_size":6},"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})");
  EXPECT_EQ(weights.names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(weights.shard_of("b")->path().filename(), "two.safetensors");
  EXPECT_EQ(weights.find("c"), nullptr);
  EXPECT_TRUE(weights.warnings().empty());
  std::string text(2, '\0');
  weights.read("b", std::as_writable_bytes(std::span(text)));
  EXPECT_EQ(text, "56");
}

TEST_F(ShardedWeightsTest, WrongTotalSizeIsAWarning) {
  const auto weights = open(R"({"metadata":{"total_size":7},"weight_map":{"a":"one.safetensors"}})");
  ASSERT_EQ(weights.warnings().size(), 1u);
  EXPECT_THAT(weights.warnings()[0], HasSubstr("expected 4 as in the shards, got 7"));
}

TEST_F(ShardedWeightsTest, MissingShardIsNamed) {
  EXPECT_THAT(error(R"({"weight_map":{"a":"three.safetensors"}})"),
              HasSubstr("\"three.safetensors\" beside the index"));
}

TEST_F(ShardedWeightsTest, PathsAreRefused) {
  for (const std::string name :
       {"../one.safetensors", "./one.safetensors", "/one.safetensors", "..", "", "a\\\\b"}) {
    EXPECT_THAT(error(R"({"weight_map":{"a":")" + name + "\"}}"),
                HasSubstr("name of a file beside the index"))
        << name;
  }
}

TEST_F(ShardedWeightsTest, TensorInAnotherShardIsNamed) {
  EXPECT_THAT(error(R"({"weight_map":{"a":"two.safetensors"}})"),
              HasSubstr("tensor \"a\": expected in shard \"two.safetensors\""));
}

TEST_F(ShardedWeightsTest, TensorThatTheIndexLeavesOutIsNamed) {
  write_shard("two.safetensors", "a", "12");
  EXPECT_THAT(error(R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})"),
              HasSubstr("tensor \"b\""));
  write_shard("one.safetensors", "c", "12");
  EXPECT_THAT(error(R"({"weight_map":{"a":"two.safetensors","d":"one.safetensors"}})"),
              HasSubstr("tensor \"d\""));
}

TEST_F(ShardedWeightsTest, TensorInTwoShardsIsRefused) {
  write_shard("two.safetensors", "a", "12");
  auto file = io::File::create(dir_.path() / "three.safetensors");
  const std::string data = "xyz";
  const auto bytes = std::as_bytes(std::span(data));
  write_safetensors(file,
                    std::vector<TensorBytes>{{{"a", DType::kU8, {1}}, bytes.first(1)},
                                             {{"b", DType::kU8, {2}}, bytes.last(2)}},
                    {});
  file.close();
  EXPECT_THAT(error(R"({"weight_map":{"a":"two.safetensors","b":"three.safetensors"}})"),
              HasSubstr("tensor \"a\": expected in the index for shard \"three.safetensors\""));
}

TEST_F(ShardedWeightsTest, ShardOfTheSeriesLeftOutIsNamed) {
  write_shard("m-00002-of-00002.safetensors", "b", "12");
  const std::string index = R"({"weight_map":{"b":"m-00002-of-00002.safetensors"}})";
  EXPECT_THAT(error(index), HasSubstr("expected the shard \"m-00001-of-00002.safetensors\" too"));
  write_shard("m-00001-of-00002.safetensors", "a", "12");
  EXPECT_THAT(error(index),
              HasSubstr("tensor \"a\": expected in the index for shard \"m-00001-of-00002.safetensors\""));
}

TEST_F(ShardedWeightsTest, NameTwiceIsRefused) {
  EXPECT_THAT(error(R"({"weight_map":{"a":"one.safetensors","a":"two.safetensors"}})"),
              HasSubstr("\"a\" stands twice"));
}

TEST_F(ShardedWeightsTest, OtherContentIsRefused) {
  EXPECT_THAT(error("{}"), HasSubstr("expected a weight_map, got none"));
  EXPECT_THAT(error("[]"), HasSubstr("expected an object"));
  EXPECT_THAT(error(R"({"weight_map":[]})"), HasSubstr("weight_map: expected tensor names"));
  EXPECT_THAT(error(R"({"weight_map":{"a":1}})"), HasSubstr("weight_map: expected tensor names"));
  EXPECT_THAT(error(R"({"weight_map":{"a":)"), HasSubstr("index: expected JSON"));
}

}  // namespace
}  // namespace chiliad::weights
