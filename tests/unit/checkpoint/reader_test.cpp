#include "chiliad/checkpoint/reader.h"
#include "chiliad/base/json_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/base/hash.h"
#include "chiliad/checkpoint/commit.h"
#include "chiliad/checkpoint/detail/manifest.h"
#include "tests/support/checkpoint_kit.h"
#include "tests/support/temp_dir.h"

namespace chiliad::checkpoint {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::TempDir;
using testing::HasSubstr;

/// A manifest that says something else, under a COMMIT that agrees with it: what checksums cannot find.
class ForgedManifestTest : public testing::Test {
 protected:
  ForgedManifestTest() : path_(test::save_checkpoint(temp_.path(), 1, test::make_tensors(1), 2, 1)) {}

  std::string open_error(const std::function<void(json&)>& edit) const {
    std::ifstream in(path_ / "manifest.json");
    json manifest = json::parse(in);
    edit(manifest);
    const std::string text = json_text(manifest);
    std::ofstream(path_ / "manifest.json") << text;
    const auto files = static_cast<int64_t>(manifest["files"].size());
    std::ofstream(path_ / "COMMIT") << detail::commit_text(
        {hash128(std::as_bytes(std::span(text))), 1, 0, files});
    try {
      (void)Checkpoint::open(path_);
    } catch (const CorruptData& error) {
      return error.what();
    }
    return "";
  }

  TempDir temp_;
  fs::path path_;
};

TEST_F(ForgedManifestTest, UnchangedIsAccepted) {
  EXPECT_EQ(open_error([](json&) {}), "");
}

TEST_F(ForgedManifestTest, PathOutsideIsRefused) {
  EXPECT_THAT(
      open_error([](json& m) { m["files"][0]["path"] = "../step-2.g0/state.json"; }),
      HasSubstr("manifest.json: path: \"../step-2.g0/state.json\" is not a plain path inside of the folder"));
}

TEST_F(ForgedManifestTest, AbsolutePathIsRefused) {
  EXPECT_THAT(open_error([](json& m) { m["files"][0]["path"] = "/etc/passwd"; }),
              HasSubstr("is not a plain path"));
}

TEST_F(ForgedManifestTest, FileListedTwiceIsRefused) {
  EXPECT_THAT(open_error([](json& m) { m["files"].push_back(m["files"][0]); }), HasSubstr("is listed twice"));
}

TEST_F(ForgedManifestTest, TensorListedTwiceIsRefused) {
  EXPECT_THAT(open_error([](json& m) { m["tensors"].push_back(m["tensors"][3]); }),
              HasSubstr("model/empty is listed twice"));
}

TEST_F(ForgedManifestTest, BoxOutsideOfItsTensorIsRefused) {
  EXPECT_THAT(open_error([](json& m) { m["tensors"][0]["boxes"][0]["offset"][0] = 1'000; }),
              HasSubstr("model/embed.weight: box [1000:"));
}

TEST_F(ForgedManifestTest, BoxBeyondItsFileIsRefused) {
  EXPECT_THAT(open_error([](json& m) {
                json& box = m["tensors"][0]["boxes"][0];
                box["at"] = m["files"][box["file"].get<size_t>()]["bytes"].get<int64_t>() / 2 * 2;
              }),
              testing::AllOf(HasSubstr("model/embed.weight: box"), HasSubstr("ends at byte")));
}

TEST_F(ForgedManifestTest, SharedBytesAreRefused) {
  EXPECT_THAT(open_error([](json& m) {
                json* first = nullptr;
                for (json& tensor : m["tensors"]) {
                  if (tensor["section"] != "model" || tensor["boxes"].empty()) continue;
                  if (tensor["boxes"][0]["size"] == json::array() || tensor["dtype"] == "F32") continue;
                  if (first == nullptr) {
                    first = &tensor;
                    continue;
                  }
                  tensor["boxes"][0]["file"] = (*first)["boxes"][0]["file"];
                  tensor["boxes"][0]["at"] = (*first)["boxes"][0]["at"];
                }
              }),
              HasSubstr("share bytes of model/rank-"));
}

TEST_F(ForgedManifestTest, MissingBoxIsRefused) {
  EXPECT_THAT(open_error([](json& m) { m["tensors"][0]["boxes"] = json::array(); }),
              HasSubstr("model/embed.weight: 35 elements of [7, 5] are covered by no box"));
}

TEST_F(ForgedManifestTest, HugeShapeIsRefused) {
  EXPECT_THAT(open_error([](json& m) {
                m["tensors"][0]["shape"] = {1LL << 58, 1LL << 58};
              }),
              HasSubstr("model/embed.weight: shape: has too many elements"));
}

TEST_F(ForgedManifestTest, NegativeExtentIsRefused) {
  EXPECT_THAT(open_error([](json& m) {
                m["tensors"][0]["shape"] = {-7, -5};
              }),
              HasSubstr("expected non-negative integers"));
}

TEST_F(ForgedManifestTest, UnknownTypeIsRefused) {
  EXPECT_THAT(open_error([](json& m) { m["tensors"][0]["dtype"] = "F12"; }),
              HasSubstr("model/embed.weight: dtype: unknown type \"F12\""));
}

TEST_F(ForgedManifestTest, WrongJsonTypeIsRefused) {
  EXPECT_THAT(open_error([](json& m) { m["step"] = "1"; }),
              HasSubstr("step: expected an integer, got string"));
}

TEST_F(ForgedManifestTest, NewerVersionIsRefused) {
  EXPECT_THAT(open_error([](json& m) { m["version"] = 2; }), HasSubstr("version: expected 1, got 2"));
}

TEST_F(ForgedManifestTest, ParentReferenceIsRefused) {
  EXPECT_THAT(open_error([](json& m) { m["parent"] = "step-0.g0"; }),
              HasSubstr("parent: expected null, got string"));
}

TEST_F(ForgedManifestTest, OtherLengthIsRefused) {
  EXPECT_THAT(open_error([](json& m) { m["files"][0]["bytes"] = m["files"][0]["bytes"].get<int64_t>() + 1; }),
              HasSubstr("bytes, got"));
}

TEST_F(ForgedManifestTest, WrongBoxDigestIsFoundByVerify) {
  ASSERT_EQ(open_error([](json& m) {
              json& tensor = m["tensors"][0];
              for (json& box : tensor["boxes"]) box["digest"] = "0000000000000000";
              tensor["digest"] = "0000000000000000";
            }),
            "");
  try {
    Checkpoint::open(path_).verify();
    FAIL() << "verified";
  } catch (const CorruptData& error) {
    EXPECT_THAT(error.what(), HasSubstr("model/embed.weight"));
  }
}

TEST(CheckpointTest, SomethingElseIsInvalidInput) {
  const TempDir temp;
  EXPECT_THROW((void)Checkpoint::open(temp.path()), InvalidInput);
  EXPECT_THROW((void)Checkpoint::open(temp.path() / "step-1.g0"), InvalidInput);
}

TEST(CheckpointTest, UncommittedIsInvalidInput) {
  const TempDir temp;
  const CheckpointWriter writer(temp.path(), 1, 1, "");
  try {
    (void)Checkpoint::open(writer.path());
    FAIL() << "opened";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("step-1.g0: was never committed"));
  }
}

TEST(CheckpointTest, NumBytesCountsAllFiles) {
  const TempDir temp;
  const auto checkpoint =
      Checkpoint::open(test::save_checkpoint(temp.path(), 1, test::make_tensors(1), 1, 1));
  EXPECT_GT(checkpoint.num_bytes(), 3 * 4096);
}

TEST(ListTest, IsNewestFirstAndNamesProblems) {
  const TempDir temp;
  test::save_checkpoint(temp.path(), 9, test::make_tensors(1), 1, 1);
  test::save_checkpoint(temp.path(), 10, test::make_tensors(1), 1, 1);
  const CheckpointWriter in_flight(temp.path(), 11, 1, "");
  fs::remove(temp.path() / "step-9.g0" / "state.json");
  const auto found = list(temp.path());
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].step, 11);
  EXPECT_FALSE(found[0].committed);
  EXPECT_EQ(found[1].step, 10);
  EXPECT_EQ(found[1].problem, "");
  EXPECT_TRUE(found[2].committed);
  EXPECT_THAT(found[2].problem, HasSubstr("state.json: is missing"));
}

TEST(ListTest, OfAMissingFolderIsEmpty) {
  const TempDir temp;
  EXPECT_TRUE(list(temp.path() / "nothing").empty());
}

}  // namespace
}  // namespace chiliad::checkpoint
