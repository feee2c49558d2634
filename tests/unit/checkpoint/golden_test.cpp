#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "chiliad/checkpoint/commit.h"
#include "chiliad/checkpoint/reader.h"
#include "tests/support/checkpoint_kit.h"
#include "tests/support/temp_dir.h"

namespace chiliad::checkpoint {
namespace {

namespace fs = std::filesystem;

const fs::path kGolden = fs::path(CHILIAD_TEST_DATA) / "checkpoint" / "v1" / "step-12.g0";

std::vector<test::WholeTensor> golden_tensors() {
  std::vector<test::WholeTensor> tensors{
      {"model", "w", DType::kBF16, {3, 4}, std::vector<std::byte>(24)},
      {"optim", "exp_avg.w", DType::kF32, {3, 4}, std::vector<std::byte>(48)},
      {"optim", "step", DType::kI64, Shape(), std::vector<std::byte>(8)}};
  for (auto& tensor : tensors) {
    for (size_t i = 0; i < tensor.data.size(); ++i) tensor.data[i] = static_cast<std::byte>(i * 37 % 251);
  }
  return tensors;
}

/// Rank 0 owns row 0 of each matrix and the scalar, rank 1 the other rows.
fs::path write_golden(const fs::path& folder) {
  const auto tensors = golden_tensors();
  CheckpointWriter writer(folder, 12, 2, "version: 1\n");
  for (int rank = 0; rank < 2; ++rank) {
    std::vector<OwnedBox> boxes;
    for (const auto& tensor : tensors) {
      if (tensor.shape.rank() == 0 && rank != 0) continue;
      const bool scalar = tensor.shape.rank() == 0;
      const Box box = scalar ? Box::whole(tensor.shape) : Box::rows(tensor.shape, rank, rank == 0 ? 1 : 2);
      const auto row_bytes = scalar ? 0 : static_cast<int64_t>(tensor.data.size()) / tensor.shape[0];
      boxes.push_back({tensor.section, tensor.name, tensor.dtype, tensor.shape, box,
                       tensor.data.data() + rank * row_bytes});
    }
    writer.write_rank(test::view_of(12, rank, "{\"cursor\":96}", boxes));
  }
  writer.commit();
  return writer.path();
}

std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    files[entry.path().lexically_relative(folder).string()] = {std::istreambuf_iterator<char>(in), {}};
  }
  return files;
}

TEST(GoldenTest, VersionOneIsRead) {
  const Checkpoint checkpoint = Checkpoint::open(kGolden);
  EXPECT_NO_THROW(checkpoint.verify());
  EXPECT_EQ(test::difference(checkpoint, golden_tensors()), "");
  EXPECT_EQ(checkpoint.state(), "{\"cursor\":96}");
}

TEST(GoldenTest, VersionOneIsWrittenByteForByte) {
  const test::TempDir temp;
  const auto written = contents(write_golden(temp.path()));
  const auto golden = contents(kGolden);
  ASSERT_EQ(written.size(), golden.size());
  for (const auto& [name, content] : golden) EXPECT_TRUE(written.at(name) == content) << name;
}

}  // namespace
}  // namespace chiliad::checkpoint
