#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "chiliad/base/json_text.h"
#include "chiliad/io/file.h"
#include "tests/e2e/cli/run_program.h"
#include "tests/support/picture_set.h"
#include "tests/support/temp_dir.h"

namespace chiliad::test {
namespace {

using testing::HasSubstr;

class DataPagesVerbTest : public testing::Test {
 protected:
  DataPagesVerbTest() {
    write_pictures(folder_.path() / "pictures", 6);
    index_pictures(folder_.path() / "pictures", index());
  }
  [[nodiscard]] std::filesystem::path index() const { return folder_.path() / "index"; }
  [[nodiscard]] std::string page() const { return (folder_.path() / "page.html").string(); }

  TempDir folder_;
};

TEST_F(DataPagesVerbTest, StatsWriteAPage) {
  const auto result =
      run_chiliad({"data", "stats", index().string(), "--html", page(), "--max-pictures", "2", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(parse_json<nlohmann::json>(result.out).at("html"), page());
  EXPECT_THAT(io::read_text(page(), 1 << 24), HasSubstr("2 of them, drawn by a hash of their keys."));
}

TEST_F(DataPagesVerbTest, VerifyWritesAPageAndStillSaysDamaged) {
  flip_bit(folder_.path() / "pictures" / (picture_name(3) + ".png"));
  const auto result = run_chiliad({"data", "verify", index().string(), "--html", page(), "--quiet"});
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_THAT(io::read_text(page(), 1 << 24), HasSubstr("1 problems"));
}

TEST_F(DataPagesVerbTest, APageThatCannotBeWrittenIsAnError) {
  const auto result = run_chiliad({"data", "stats", index().string(), "--html", "/nonexistent/page.html"});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("/nonexistent"));
}

}  // namespace
}  // namespace chiliad::test
