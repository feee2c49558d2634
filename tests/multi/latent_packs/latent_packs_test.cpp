// Training on packs of latents of any shapes against training on buckets: the same items, the same numbers.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <memory>

#include "tests/support/latent_columns.h"
#include "tests/support/latent_run.h"
#include "tests/support/picture_set.h"
#include "tests/support/temp_dir.h"
#include "tests/support/train_ranks.h"

namespace chiliad::test {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSteps = 4;

class LatentPacksTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    write_pictures(folder_.path() / "pictures", 20);
    if (std::string(GetParam()) == "dit") name_classes();
    index_pictures(folder_.path() / "pictures", folder_.path() / "index");
    write_text_encoder(folder_.path() / "text");
    write_autoencoder(folder_.path() / "vae");
    write_latent_columns(file("bucket"), index());
  }

  void name_classes() {
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path() / "pictures"))
      if (entry.path().extension() == ".txt") std::ofstream(entry.path()) << "3\n";
  }

  [[nodiscard]] spec::RunFile file(const std::string& mode) const {
    auto made =
        spec::parse_run_file(latent_run_file(GetParam(), folder_.path(), kSteps), "run.yaml", "run", {});
    made.data.mode = mode;
    made.data.micro_batch_tokens = spec::pads_captions(made.model) ? 160 : 64;
    made.objective.caption_dropout = 0.3;
    return made;
  }
  [[nodiscard]] index::Index index() const { return index::Index::open(folder_.path() / "index"); }
  [[nodiscard]] RanksResult run(const std::string& mode, const parallel::MeshShape& shape = {}) const {
    return run_mesh(file(mode), index(), shape, kSteps, {.draw_zeros = true, .watch = {}});
  }

  TempDir folder_;
};

TEST_P(LatentPacksTest, GiveTheNumbersOfBuckets) {
  EXPECT_EQ(layout_difference(run("bucket"), run("pack")), "");
}

TEST_P(LatentPacksTest, GiveTheNumbersOfOneDeviceOnTwoRanks) {
  EXPECT_EQ(layout_difference(run("pack"), run("pack", {.dp_shard = 2})), "");
}

TEST_P(LatentPacksTest, AreBitIdenticalInASecondRun) {
  const auto first = run("pack", {.dp_replicate = 2});
  const auto second = run("pack", {.dp_replicate = 2});
  EXPECT_EQ(first.losses, second.losses);
  EXPECT_EQ(first.gradients, second.gradients);
}

TEST_P(LatentPacksTest, ItemsThatSeeEachOtherAreNoticed) {
  const auto buckets = run("bucket");
  ::setenv("CHILIAD_PLANTED_BUG", "pack_items_meet", 1);
  const auto packs = run("pack");
  ::unsetenv("CHILIAD_PLANTED_BUG");
  EXPECT_NE(layout_difference(buckets, packs), "");
}

INSTANTIATE_TEST_SUITE_P(Families, LatentPacksTest, testing::Values("dit", "pixart", "sd3", "flux"),
                         [](const auto& given) { return std::string(given.param); });

}  // namespace
}  // namespace chiliad::test
