// The run files that come with the system are good ones, of the models that they name.
#include <gtest/gtest.h>

#include <filesystem>

#include "chiliad/spec/layer_table.h"
#include "chiliad/spec/run_file.h"

namespace chiliad::spec {
namespace {

namespace fs = std::filesystem;

fs::path root() {
  return fs::path(CHILIAD_TEST_DATA).parent_path().parent_path();
}

double millions(const char* recipe) {
  return static_cast<double>(
             make_layer_table(read_run_file(root() / "recipes" / recipe, {}).model).num_params()) *
         1e-6;
}

TEST(RecipesTest, AllAreGood) {
  int found = 0;
  for (const char* folder : {"recipes", "examples"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root() / folder)) {
      if (entry.path().extension() != ".yaml") continue;
      if (entry.path().parent_path().filename() == "extension")
        continue;  // needs its library: tests/e2e/extension
      ++found;
      EXPECT_NO_THROW((void)read_run_file(entry.path(), {"data.index=index"})) << entry.path();
    }
  }
  EXPECT_GE(found, 8);
}

TEST(RecipesTest, HaveThePublishedNumbersOfParameters) {
  // Without the fixed tables of positions, which are no parameters of ours.
  EXPECT_NEAR(millions("dit/dit-xl-2-256.yaml"), 675.0, 2.0);
  EXPECT_NEAR(millions("pixart/pixart-alpha-256.yaml"), 611.0, 3.0);
  EXPECT_NEAR(millions("pixart/pixart-sigma-512.yaml"), 611.0, 3.0);
  EXPECT_NEAR(millions("sd3/sd3-medium-finetune.yaml"), 2085.0, 60.0);
}

}  // namespace
}  // namespace chiliad::spec
