// Every safetensors file and sharded index of the kit, and the large one that is made here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/weights/safetensors.h"
#include "chiliad/weights/sharded_index.h"
#include "tests/support/kits.h"
#include "tests/support/temp_dir.h"

namespace chiliad::weights {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

nlohmann::json kit_index() {
  std::ifstream stream(test::hard_files_kit() / "index.json");
  return nlohmann::json::parse(stream, nullptr, false);
}

// What a refusal must say, by the name of the file or, for an index, of its folder; a file that is not listed
// must at least be refused with its path.
const std::map<std::string, std::string> kCauses{
    {"data_cut.safetensors", "tensor \"b\": data_offsets: expected an end within"},
    {"dtype_unknown.safetensors", "got \"F33\""},
    {"duplicate_names.safetensors", "\"a\" stands twice"},
    {"header_array.safetensors", "expected JSON beginning with {"},
    {"header_not_json.safetensors", "expected JSON"},
    {"header_not_utf8.safetensors", "expected UTF-8"},
    {"hole.safetensors", "tensor \"b\": expected to begin at byte 4 of the data, got 8: a hole"},
    {"length_2_63.safetensors", "got a length of 9223372036854775808"},
    {"length_past_end.safetensors", "The file is cut"},
    {"metadata_number.safetensors", "__metadata__: \"step\": expected text"},
    {"offset_negative.safetensors", "data_offsets: expected whole numbers"},
    {"offset_past_end.safetensors", "data_offsets: expected an end within"},
    {"offsets_reversed.safetensors", "expected begin <= end"},
    {"overlap.safetensors", "got an overlap"},
    {"padded_nul.safetensors", "padded with spaces"},
    {"seven_bytes.safetensors", "at least 8 bytes, got 7"},
    {"shape_negative.safetensors", "shape: expected whole numbers"},
    {"shape_overflow.safetensors", "expected a size below 2^63"},
    {"size_mismatch.safetensors", "expected 4000000 bytes"},
    {"trailing_bytes.safetensors", "got 16 bytes after it"},
    {"zero_bytes.safetensors", "at least 8 bytes, got 0"},
    {"index_extra_tensor", "tensor \"b\": expected in the index"},
    {"index_shard_missing", "\"model-00002-of-00002.safetensors\" beside the index"},
    {"index_traversal", "got \"../plain.safetensors\""},
    {"index_wrong_shard", "tensor \"b\": expected in shard"}};

void open_and_read_all(const fs::path& path, bool is_index) {
  std::vector<std::byte> bytes;
  const auto read_all = [&](const SafetensorsFile& file) {
    for (const TensorEntry& tensor : file.tensors()) {
      bytes.resize(static_cast<size_t>(tensor.num_bytes()));
      file.read(tensor.name, bytes);
    }
  };
  if (!is_index) return read_all(SafetensorsFile::open(path));
  const auto weights = ShardedWeights::open(path);
  for (const SafetensorsFile& shard : weights.shards()) read_all(shard);
}

class HardSafetensorsTest : public testing::TestWithParam<std::string> {};

TEST_P(HardSafetensorsTest, HasTheOutcomeOfTheKit) {
  const auto entry = kit_index()["files"][GetParam()];
  const fs::path path = test::hard_files_kit() / GetParam();
  const bool is_index = entry["kind"] == "safetensors-index";
  std::string error;
  try {
    open_and_read_all(path, is_index);
  } catch (const CorruptData& refusal) {
    error = refusal.what();
  }
  if (entry["expect"] == "ok") {
    EXPECT_EQ(error, "");
    return;
  }
  EXPECT_THAT(error, HasSubstr(path.string() + ": "));
  const auto cause = kCauses.find(is_index ? path.parent_path().filename() : path.filename());
  EXPECT_THAT(error, HasSubstr(cause == kCauses.end() ? "expected" : cause->second));
}

std::vector<std::string> cases() {
  const auto index = kit_index();
  std::vector<std::string> names;
  if (index.is_discarded()) return names;
  for (const auto& [name, entry] : index["files"].items()) {
    if (entry["kind"] == "safetensors" || entry["kind"] == "safetensors-index") names.push_back(name);
  }
  return names;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name;
  for (const char c : info.param) {
    if (std::isalnum(static_cast<unsigned char>(c))) name += c;
  }
  return name + std::to_string(info.index);
}

INSTANTIATE_TEST_SUITE_P(Kit, HardSafetensorsTest, testing::ValuesIn(cases()), test_name);

TEST(HardSafetensorsKitTest, IsThere) {
  EXPECT_GE(cases().size(), 34u) << test::hard_files_kit();
}

TEST(HardSafetensorsKitTest, PlainFileHasItsTensors) {
  const auto file = SafetensorsFile::open(test::hard_files_kit() / "safetensors/plain.safetensors");
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.tensors()[0].dtype, DType::kF32);
  EXPECT_EQ(file.tensors()[0].shape, Shape({2, 2}));
  EXPECT_EQ(file.tensors()[1].dtype, DType::kI64);
  EXPECT_EQ(file.tensors()[1].shape, Shape({3}));
}

TEST(HardSafetensorsKitTest, WrongTotalSizeIsWarnedAbout) {
  const auto path =
      test::hard_files_kit() / "safetensors/index_total_size_wrong/model.safetensors.index.json";
  EXPECT_EQ(ShardedWeights::open(path).warnings().size(), 1u);
}

// The recipe safetensors_huge_header: a sound header of 101,000,000 bytes, nearly all blanks.
TEST(HardSafetensorsKitTest, HugeHeaderIsOverTheCap) {
  constexpr uint64_t kHeaderBytes = 101'000'000;
  const test::TempDir dir;
  const fs::path path = dir.path() / "huge.safetensors";
  std::ofstream stream(path, std::ios::binary);
  for (int i = 0; i < 8; ++i) stream.put(static_cast<char>(kHeaderBytes >> (8 * i) & 0xFF));
  stream << "{}";
  const std::string blanks(1'000'000, ' ');
  for (uint64_t written = 2; written < kHeaderBytes;) {
    const uint64_t now = std::min<uint64_t>(blanks.size(), kHeaderBytes - written);
    stream.write(blanks.data(), static_cast<std::streamsize>(now));
    written += now;
  }
  stream.close();
  try {
    (void)SafetensorsFile::open(path);
    FAIL() << "accepted";
  } catch (const CorruptData& error) {
    EXPECT_THAT(error.what(), HasSubstr("expected at most 100000000 bytes, got a length of 101000000"));
  }
}

}  // namespace
}  // namespace chiliad::weights
