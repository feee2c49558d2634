// Columns of a mix: each lies in the index of its source, as a run of that source alone makes it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "chiliad/base/error.h"
#include "chiliad/features/column.h"
#include "tests/support/latent_columns.h"
#include "tests/support/latent_run.h"
#include "tests/support/picture_set.h"
#include "tests/support/temp_dir.h"

namespace chiliad::features {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class ColumnOfSourcesTest : public ::testing::Test {
 protected:
  ColumnOfSourcesTest() {
    test::write_text_encoder(folder_.path() / "text");
    test::write_autoencoder(folder_.path() / "vae");
    make_source("many", 12);
    make_source("few", 5);
    const std::string sources =
        "data.sources=[{name: many, index: " + place("many") + "}, {name: few, index: " + place("few") + "}]";
    const auto text = test::latent_run_file("pixart", folder_.path(), 4);
    const std::string index = "index: \"" + (folder_.path() / "index").string() + "\", ";
    std::string without = text;
    without.erase(without.find(index), index.size());
    run_ = spec::parse_run_file(without, "run.yaml", "run", {sources});
  }

  std::string place(const std::string& name) const { return (folder_.path() / (name + ".index")).string(); }
  void make_source(const std::string& name, int64_t count) {
    test::write_pictures(folder_.path() / name, count);
    test::index_pictures(folder_.path() / name, place(name));
  }
  void make_columns() {
    for (const auto& source : source_runs(run_)) {
      const auto index = index::Index::open(source.data.sources.front().index);
      test::write_latent_columns(source, index);
    }
  }
  index::Index both() const {
    return index::Index::concatenate({index::Index::open(place("many")), index::Index::open(place("few"))});
  }

  test::TempDir folder_;
  spec::RunFile run_;
};

TEST_F(ColumnOfSourcesTest, EachSourceHasItsOwn) {
  make_columns();
  for (const Kind kind : kinds_of(run_)) {
    const auto name = identity_of(run_, kind).folder_name();
    EXPECT_TRUE(fs::exists(fs::path(place("many")) / "columns" / name / "column.json"));
    EXPECT_TRUE(fs::exists(fs::path(place("few")) / "columns" / name / "column.json"));
  }
}

TEST_F(ColumnOfSourcesTest, FeaturesAreThoseOfTheSource) {
  make_columns();
  const auto index = both();
  const auto column = Column::open(index, identities_of(run_, Kind::kLatents));
  const auto alone = Column::open(index::Index::open(place("few")), {identity_of(run_, Kind::kLatents)});
  const uint32_t first = index.members()[1].first_shard;
  int compared = 0;
  for (uint32_t sample = 0; sample < 5; ++sample) {
    const auto* entry = column.find(first, {sample, false});
    ASSERT_NE(entry, nullptr);
    std::vector<std::byte> bytes(static_cast<size_t>(entry->num_bytes));
    std::vector<std::byte> expected(bytes.size());
    ASSERT_EQ(column.read(first, {sample, false}, bytes), "");
    ASSERT_EQ(alone.read(0, {sample, false}, expected), "");
    EXPECT_EQ(bytes, expected);
    ++compared;
  }
  EXPECT_EQ(compared, 5);
}

TEST_F(ColumnOfSourcesTest, TheSummaryIsOverAllSources) {
  make_columns();
  const auto column = Column::open(both(), identities_of(run_, Kind::kLatents));
  EXPECT_EQ(column.summary().num_features, 2 * (12 + 5));  // and flipped
  EXPECT_EQ(column.summary().channels, 4);
  const auto summary_of = [&](const std::string& name) {
    return Column::open(index::Index::open(place(name)), {identity_of(run_, Kind::kLatents)}).summary();
  };
  const auto many = summary_of("many");
  const auto few = summary_of("few");
  const double part =
      static_cast<double>(many.num_bytes) / static_cast<double>(many.num_bytes + few.num_bytes);
  EXPECT_NEAR(column.summary().mean, part * many.mean + (1.0 - part) * few.mean, 1e-12);
  EXPECT_GT(column.summary().deviation, 0.9);
  EXPECT_LT(column.summary().deviation, 1.1);
}

TEST_F(ColumnOfSourcesTest, ASourceWithoutItsColumnIsNamed) {
  make_columns();
  fs::remove_all(fs::path(place("few")) / "columns");
  EXPECT_THAT([&] { (void)Column::open(both(), identities_of(run_, Kind::kText)); },
              ThrowsMessage<InvalidInput>(HasSubstr("few.index")));
}

TEST_F(ColumnOfSourcesTest, LanguagesOfASourceAreAFactOfItsColumn) {
  run_.data.sources[1].languages = {"de"};
  const auto identities = identities_of(run_, Kind::kText);
  ASSERT_EQ(identities.size(), 2U);
  EXPECT_EQ(identities[0].key(), identity_of(run_, Kind::kText).key());
  EXPECT_NE(identities[1].key(), identities[0].key());
  EXPECT_EQ(identities[1].key(), identity_of(source_runs(run_)[1], Kind::kText).key());
}

}  // namespace
}  // namespace chiliad::features
