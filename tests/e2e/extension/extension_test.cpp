// Extensions as users have them: built out of tree by find_package(Chiliad), loaded by the built programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "chiliad/io/file.h"
#include "tests/support/program.h"
#include "tests/support/temp_dir.h"

namespace chiliad::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr int64_t kMostBytes = 1 << 30;

ProgramResult run(std::vector<std::string> argv) {
  return Program(std::move(argv), {}).wait(std::chrono::minutes(5));
}

ProgramResult chiliad(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), CHILIAD_BIN_DIR "/chiliad");
  return run(std::move(arguments));
}

fs::path build_tree() {
  return fs::path(CHILIAD_BIN_DIR).parent_path();
}

/// Configures and builds `source` as its user would. `where`: the option that names Chiliad.
void build(const fs::path& source, const fs::path& folder, const std::string& where) {
  const auto configured = run({"cmake", "-G", "Ninja", "-S", source, "-B", folder, where});
  ASSERT_EQ(configured.exit_code, 0) << configured.out << configured.err;
  const auto built = run({"cmake", "--build", folder});
  ASSERT_EQ(built.exit_code, 0) << built.out << built.err;
}

/// Its own tests: training, resuming, layouts.
void expect_tests_pass(const fs::path& folder) {
  const auto tested = run({"ctest", "--test-dir", folder, "--output-on-failure", "--no-tests=error"});
  EXPECT_EQ(tested.exit_code, 0) << tested.out << tested.err;
}

std::string in_build_tree() {
  return "-DChiliad_DIR=" + build_tree().string();
}

/// The example, built once.
class ExtensionTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TempDir>();
    build(fs::path(CHILIAD_TEST_DATA) / "../../examples/extension", built(), in_build_tree());
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static fs::path built() { return folder_->path() / "build"; }
  static fs::path library() { return built() / "libgated_mlp.so"; }

  /// `train --check` of the example's run file with one text replaced.
  static ProgramResult check(const std::string& from, const std::string& to) {
    std::string text = io::read_text(built() / "run.yaml", kMostBytes);
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos);
    text.replace(at, from.size(), to);
    io::write_atomic(built() / "changed.yaml", text);
    return chiliad({"train", built() / "changed.yaml", "--check"});
  }

 private:
  static std::unique_ptr<TempDir> folder_;
};
std::unique_ptr<TempDir> ExtensionTest::folder_;

TEST_F(ExtensionTest, ItsLayerAndLossTrainResumeAndHoldInEveryLayout) {
  expect_tests_pass(built());
}

TEST_F(ExtensionTest, TheResolvedRunFileNamesThemWithTheirOptions) {
  ASSERT_EQ(chiliad({"data", "index", fs::path(CHILIAD_TEST_DATA) / "../../examples/extension/pictures",
                     "--out", built() / "index2", "--quiet"})
                .exit_code,
            0);
  const auto trained =
      chiliad({"train", built() / "run.yaml", "--quiet", "--set", "run.dir=" + (built() / "one").string(),
               "--set", "data.index=" + (built() / "index2").string(), "--set", "run.steps=1"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const std::string text = io::read_text(built() / "one/run.yaml", kMostBytes);
  EXPECT_THAT(text, HasSubstr("family: gated_dit"));
  EXPECT_THAT(text, HasSubstr("gate_width: 48"));
  EXPECT_THAT(text, HasSubstr("kind: huber_flow"));
  EXPECT_THAT(text, HasSubstr(library().string()));
}

TEST_F(ExtensionTest, AnUnknownOptionNamesTheNearest) {
  const auto result = check("gate_width: 48", "gate_wdth: 48");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("unknown key \"gate_wdth\" in section model. Did you mean gate_width?"));
}

TEST_F(ExtensionTest, AnOptionOutOfItsRangeSaysTheRange) {
  const auto result = check("gate_width: 48", "gate_width: 0");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("model.gate_width: expected a whole number in [1, 65536], got \"0\""));
}

TEST_F(ExtensionTest, AnUnknownFamilyNamesTheNearest) {
  const auto result = check("family: gated_dit", "family: gated_dot");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("Did you mean gated_dit?"));
}

TEST_F(ExtensionTest, AnUnknownObjectiveNamesTheNearest) {
  const auto result = check("kind: huber_flow", "kind: hubr_flow");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("Did you mean huber_flow?"));
}

TEST_F(ExtensionTest, ALibraryOfAnotherBuildIsRefused) {
  std::string bytes = io::read_text(library(), kMostBytes);
  const size_t id = bytes.find("chiliad-build-id:");
  ASSERT_NE(id, std::string::npos);
  const size_t torch = bytes.find("torch ", id);
  bytes[torch + std::string("torch ").size()] = '9';
  io::write_atomic(built() / "libother.so", bytes);
  const auto result = check("[libgated_mlp.so]", "[libother.so]");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("expected a library that was built with Chiliad "));
  EXPECT_THAT(result.err, HasSubstr("torch 9"));
  EXPECT_THAT(result.err, HasSubstr("Build it again with this Chiliad"));
}

TEST_F(ExtensionTest, AFileThatIsNoLibraryIsRefused) {
  io::write_atomic(built() / "libtext.so", "text");
  const auto result = check("[libgated_mlp.so]", "[libtext.so]");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("expected a library of extensions, got another file"));
}

TEST_F(ExtensionTest, AMissingLibraryIsNamedWithItsPlace) {
  const auto result = check("[libgated_mlp.so]", "[libgone.so]");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("changed.yaml:3:14: extensions: expected a library, got \"" +
                                    (built() / "libgone.so").string()));
}

TEST(InstalledTreeTest, AnExtensionIsBuiltAndTrainedFromIt) {
  const TempDir folder;
  const fs::path prefix = folder.path() / "prefix";
  const auto installed = run({"cmake", "--install", build_tree(), "--prefix", prefix});
  ASSERT_EQ(installed.exit_code, 0) << installed.out << installed.err;
  build(fs::path(CHILIAD_TEST_DATA) / "../../examples/extension", folder.path() / "build",
        "-DCMAKE_PREFIX_PATH=" + prefix.string());
  const auto tested = run({"ctest", "--test-dir", folder.path() / "build", "--output-on-failure",
                           "--no-tests=error", "-R", "index|trains|resumes"});
  EXPECT_EQ(tested.exit_code, 0) << tested.out << tested.err;
}

class NewTest : public testing::TestWithParam<std::string> {};

TEST_P(NewTest, WhatItWritesBuildsAndPassesItsTests) {
  const TempDir folder;
  const fs::path made = folder.path() / "made";
  const auto written = chiliad({"new", GetParam(), "my_thing", "--out", made});
  ASSERT_EQ(written.exit_code, 0) << written.err;
  build(made, made / "build", in_build_tree());
  expect_tests_pass(made / "build");
}

INSTANTIATE_TEST_SUITE_P(Kinds, NewTest, testing::Values("layer", "objective", "model"),
                         [](const auto& given) { return std::string(given.param); });

TEST(NewRefusalTest, AFolderThatIsThereIsKept) {
  const TempDir folder;
  io::write_atomic(folder.path() / "mine.cpp", "precious");
  const auto result = chiliad({"new", "layer", "mine", "--out", folder.path()});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("expected a folder that is not there yet or is empty"));
  EXPECT_EQ(io::read_text(folder.path() / "mine.cpp", kMostBytes), "precious");
}

TEST(NewRefusalTest, ANameThatIsNoWordIsRefused) {
  const auto result = chiliad({"new", "layer", "My-Layer"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("expected a name of a to z, 0 to 9 and _, got 'My-Layer'"));
}

TEST(NewRefusalTest, AnUnknownKindNamesTheNearest) {
  const auto result = chiliad({"new", "objectiv", "mine"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("Did you mean objective?"));
}

}  // namespace
}  // namespace chiliad::test
