#include "chiliad/features/verify_columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "chiliad/features/column.h"
#include "tests/support/latent_columns.h"
#include "tests/support/latent_run.h"
#include "tests/support/picture_set.h"
#include "tests/support/temp_dir.h"

namespace chiliad::features {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class VerifyColumnsTest : public ::testing::Test {
 protected:
  VerifyColumnsTest() {
    test::write_text_encoder(folder_.path() / "text");
    test::write_autoencoder(folder_.path() / "vae");
    test::write_pictures(folder_.path() / "pictures", 12);
    test::index_pictures(folder_.path() / "pictures", folder_.path() / "index");
    run_ = spec::parse_run_file(test::latent_run_file("pixart", folder_.path(), 4), "run.yaml", "run", {});
  }

  void make_columns() const { test::write_latent_columns(run_, index()); }
  index::Index index() const { return index::Index::open(folder_.path() / "index"); }
  ColumnsReport verify() const { return verify_columns(index(), 2, {}); }
  fs::path column(Kind kind) const { return column_folder(index(), identity_of(run_, kind)); }
  fs::path latents() const {
    return part_path(column(Kind::kLatents), index().manifest().shards.front().content, 0);
  }
  static auto problem(const fs::path& file, const std::string& what) {
    return AllOf(Field(&ColumnProblem::file, HasSubstr(file.filename().string())),
                 Field(&ColumnProblem::what, HasSubstr(what)));
  }

  test::TempDir folder_;
  spec::RunFile run_;
};

TEST_F(VerifyColumnsTest, AnIndexWithoutColumnsHasNoProblem) {
  const auto report = verify();
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_EQ(report.num_columns, 0);
}

TEST_F(VerifyColumnsTest, EveryFeatureOfWholeColumnsIsRead) {
  make_columns();
  const auto report = verify();
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_THAT(report.unfinished, IsEmpty());
  EXPECT_EQ(report.num_columns, 2);
  const auto latents = read_column_file(column(Kind::kLatents)).summary;
  const auto text = read_column_file(column(Kind::kText)).summary;
  EXPECT_GT(latents.num_features, 0);
  EXPECT_EQ(report.num_features, latents.num_features + text.num_features);
  EXPECT_EQ(report.bytes_read, latents.num_bytes + text.num_bytes);
}

TEST_F(VerifyColumnsTest, ProgressEndsAtItsTotal) {
  make_columns();
  int64_t last = -1;
  int64_t whole = 0;
  (void)verify_columns(index(), 2, [&](int64_t done, int64_t total) {
    EXPECT_LE(last, done);
    last = done;
    whole = total;
  });
  EXPECT_GT(whole, 0);
  EXPECT_EQ(last, whole);
}

TEST_F(VerifyColumnsTest, AFlippedBitIsNamed) {
  make_columns();
  test::flip_bit(latents());
  EXPECT_THAT(verify().problems, ElementsAre(problem(latents(), "checksum")));
  EXPECT_EQ(verify().problems.front().file, fs::relative(latents(), folder_.path() / "index").string());
}

TEST_F(VerifyColumnsTest, AMissingAndACutPartAreNamed) {
  make_columns();
  fs::resize_file(latents(), 100);
  fs::remove(empty_text_path(column(Kind::kText)));
  EXPECT_THAT(verify().problems,
              ElementsAre(problem(latents(), "encode RUN.yaml"), problem("empty.safetensors", "is missing")));
}

TEST_F(VerifyColumnsTest, ADamagedColumnFileIsNamedAndTheOthersAreRead) {
  make_columns();
  std::ofstream(column(Kind::kLatents) / "column.json") << "{";
  test::flip_bit(empty_text_path(column(Kind::kText)));  // in its header, which is longer than its values
  EXPECT_THAT(verify().problems, ElementsAre(problem(column(Kind::kLatents), "is no JSON"),
                                             problem("empty.safetensors", "encode RUN.yaml")));
}

TEST_F(VerifyColumnsTest, AColumnThatIsNotWholeIsSaidAndNotRead) {
  make_columns();
  fs::remove(column(Kind::kLatents) / "column.json");
  fs::remove(latents());
  const auto report = verify();
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_THAT(report.unfinished, ElementsAre(column(Kind::kLatents).filename().string()));
  EXPECT_EQ(report.num_columns, 1);
}

}  // namespace
}  // namespace chiliad::features
