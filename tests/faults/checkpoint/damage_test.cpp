#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/checkpoint/commit.h"
#include "chiliad/checkpoint/reader.h"
#include "tests/support/checkpoint_kit.h"
#include "tests/support/temp_dir.h"

namespace chiliad::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// A good step 1, and a step 2 to be damaged.
class DamageTest : public testing::Test {
 protected:
  DamageTest() {
    test::save_checkpoint(temp_.path(), 1, test::make_tensors(1), 2, 1);
    newer_ = test::save_checkpoint(temp_.path(), 2, test::make_tensors(2), 2, 2);
    for (const auto& entry : fs::recursive_directory_iterator(newer_)) {
      if (entry.is_regular_file()) files_.push_back(entry.path());
    }
    std::sort(files_.begin(), files_.end());
  }

  static std::string content(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void put(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }

  /// Expects that step 2 is passed over, and that the report names step 2 and `file` (COMMIT speaks through
  /// the manifest too).
  void expect_found(const fs::path& file) {
    std::string told;
    const auto best = newest_good(
        temp_.path(), [&](const std::string& path, const std::string& why) { told += path + ": " + why; });
    ASSERT_TRUE(best.has_value());
    ASSERT_EQ(best->step(), 1) << "damage to " << file << " was not found";
    ASSERT_THAT(told, HasSubstr(newer_.string()));
    const bool either = file.filename() == "COMMIT" || file.filename() == "manifest.json";
    if (either) return;
    ASSERT_THAT(told, HasSubstr(file.filename().string()));
  }

  test::TempDir temp_;
  fs::path newer_;
  std::vector<fs::path> files_;
};

TEST_F(DamageTest, OneFlippedBitAnywhereIsFound) {
  Rng rng(11);
  for (const fs::path& file : files_) {
    const std::string whole = content(file);
    for (int round = 0; round < 12; ++round) {
      const size_t position = round == 0 ? 0 : round == 1 ? whole.size() - 1 : rng.below(whole.size());
      SCOPED_TRACE(file.string() + " byte " + std::to_string(position));
      std::string flipped = whole;
      flipped[position] = static_cast<char>(flipped[position] ^ (1 << rng.below(8)));
      put(file, flipped);
      expect_found(file);
      put(file, whole);
    }
  }
  EXPECT_EQ(newest_good(temp_.path(), [](const std::string&, const std::string&) {})->step(), 2);
}

TEST_F(DamageTest, TruncatedAndZeroedFilesAreFound) {
  Rng rng(12);
  for (const fs::path& file : files_) {
    SCOPED_TRACE(file.string());
    const std::string whole = content(file);
    for (const size_t length : {size_t{0}, whole.size() - 1, static_cast<size_t>(rng.below(whole.size()))}) {
      put(file, whole.substr(0, length));
      expect_found(file);
    }
    put(file, std::string(whole.size(), '\0'));
    expect_found(file);
    put(file, whole + "x");
    expect_found(file);
    put(file, whole);
  }
}

TEST_F(DamageTest, MissingFileIsFound) {
  for (const fs::path& file : files_) {
    if (file.filename() == "COMMIT") continue;  // that is an uncommitted checkpoint
    SCOPED_TRACE(file.string());
    const std::string whole = content(file);
    fs::remove(file);
    expect_found(file);
    put(file, whole);
  }
}

TEST_F(DamageTest, ARankInThePlaceOfAnotherIsFound) {
  const fs::path first = newer_ / "model" / "rank-00000.safetensors";
  const fs::path second = newer_ / "model" / "rank-00001.safetensors";
  put(second, content(first));
  expect_found(second);
}

TEST_F(DamageTest, AnExtraFileIsNamedAndNotUsed) {
  put(newer_ / "model" / "rank-00002.safetensors", content(newer_ / "model" / "rank-00000.safetensors"));
  std::string told;
  const auto best = newest_good(
      temp_.path(), [&](const std::string& path, const std::string& why) { told += path + ": " + why; });
  EXPECT_EQ(best->step(), 2);
  EXPECT_THAT(told, HasSubstr("rank-00002.safetensors: is not in the manifest and is ignored"));
  EXPECT_THROW(best->verify(), CorruptData);
}

TEST_F(DamageTest, CommitOfAnotherGenerationIsFound) {
  const fs::path again = temp_.path() / "step-2.g1";
  fs::copy(newer_, again, fs::copy_options::recursive);
  fs::remove(newer_ / "COMMIT");
  std::string told;
  const auto best =
      newest_good(temp_.path(), [&](const std::string&, const std::string& why) { told += why; });
  EXPECT_EQ(best->step(), 1);
  EXPECT_THAT(told, HasSubstr("belongs to step 2 generation 0, the folder is step-2.g1"));
}

TEST_F(DamageTest, CommitOfAnotherStepIsFound) {
  put(newer_ / "COMMIT", content(temp_.path() / "step-1.g0" / "COMMIT"));
  expect_found("COMMIT");
}

TEST_F(DamageTest, ManifestOfAnotherStepIsFound) {
  put(newer_ / "manifest.json", content(temp_.path() / "step-1.g0" / "manifest.json"));
  expect_found("manifest.json");
}

}  // namespace
}  // namespace chiliad::checkpoint
