// The command line on a set behind a web server on the loopback.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "chiliad/io/file.h"
#include "tests/support/program.h"
#include "tests/support/remote_set.h"
#include "tests/support/tiny_run.h"

namespace chiliad {
namespace {

using ::testing::HasSubstr;

class RemoteCliTest : public ::testing::Test {
 protected:
  RemoteCliTest() : set_(20) {}

  test::ProgramResult run(std::vector<std::string> arguments,
                          const test::Program::Environment& environment = {}) {
    arguments.insert(arguments.begin(), CHILIAD_BIN_DIR "/chiliad");
    return test::Program(arguments, environment).wait();
  }
  test::ProgramResult index() {
    return run({"data", "index", set_.root() + "/{000000..000000}.tar", "--out", index_folder(), "--quiet"});
  }
  test::ProgramResult show(const std::vector<std::string>& more,
                           const test::Program::Environment& environment = {}) {
    io::write_atomic(folder_.path() / "run.yaml", test::tiny_run_file(index_folder(), 8));
    std::vector<std::string> arguments{"data", "show",  (folder_.path() / "run.yaml").string(),  "--step",
                                       "0",    "--out", (folder_.path() / "page.html").string(), "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments, environment);
  }
  std::string index_folder() const { return (folder_.path() / "set.index").string(); }
  std::vector<std::string> cache() const {
    return {"--set", "store.folder=" + (folder_.path() / "cache").string()};
  }

  test::TempDir folder_;
  test::RemoteSet set_;
};

TEST_F(RemoteCliTest, IndexesAndShowsAStep) {
  const auto indexed = index();
  ASSERT_EQ(indexed.exit_code, 0) << indexed.err;
  const auto shown = show(cache());
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "page.html"));
}

/// Two ranks that read through the cache of their job get the weights of two that read files.
TEST_F(RemoteCliTest, TrainsToTheBitsThatFilesGive) {
  ASSERT_EQ(index().exit_code, 0);
  const auto here = (folder_.path() / "here.index").string();
  const auto local = set_.local();
  const auto indexed = run({"data", "index", local.manifest().root, "--out", here, "--quiet"});
  ASSERT_EQ(indexed.exit_code, 0) << indexed.err;
  const auto train = [&](const std::string& index, const std::string& name, std::vector<std::string> more) {
    const auto file = folder_.path() / (name + ".yaml");
    io::write_atomic(file, test::tiny_run_file(index, 4));
    more.insert(more.begin(), {"train", file.string(), "--nproc", "2", "--set",
                               "run.dir=" + (folder_.path() / name).string()});
    return run(more);
  };
  const auto far = train(index_folder(), "far", cache());
  ASSERT_EQ(far.exit_code, 0) << far.err;
  const auto near = train(here, "near", {});
  ASSERT_EQ(near.exit_code, 0) << near.err;
  const auto same =
      run({"ckpt", "diff", (folder_.path() / "far").string(), (folder_.path() / "near").string()});
  EXPECT_EQ(same.exit_code, 0) << same.out << same.err;
}

/// A mix of two servers, through one cache, gives the weights of the same mix of files.
TEST_F(RemoteCliTest, TrainsOnTwoServersToTheBitsThatFilesGive) {
  const test::RemoteSet other(12);
  const auto make_index = [&](const std::string& source, const std::string& name) {
    const auto folder = (folder_.path() / name).string();
    const auto indexed = run({"data", "index", source, "--out", folder, "--quiet"});
    EXPECT_EQ(indexed.exit_code, 0) << indexed.err;
    return folder;
  };
  const auto train = [&](const std::string& name, const std::string& first, const std::string& second,
                         std::vector<std::string> more) {
    const auto file = folder_.path() / (name + ".yaml");
    std::string text = test::tiny_run_file(first, 4);
    const std::string one = "index: \"" + first + "\"";
    text.replace(text.find(one), one.size(),
                 "sources: [{name: a, index: \"" + first + "\"}, {name: b, index: \"" + second + "\"}]");
    io::write_atomic(file, text);
    more.insert(more.begin(), {"train", file.string(), "--nproc", "2", "--set",
                               "run.dir=" + (folder_.path() / name).string()});
    return run(more);
  };
  const std::string shards = "/{000000..000000}.tar";
  const auto far = train("far", make_index(set_.root() + shards, "a.far"),
                         make_index(other.root() + shards, "b.far"), cache());
  ASSERT_EQ(far.exit_code, 0) << far.err;
  const auto near = train("near", make_index(set_.local().manifest().root, "a.near"),
                          make_index(other.local().manifest().root, "b.near"), {});
  ASSERT_EQ(near.exit_code, 0) << near.err;
  const auto same =
      run({"ckpt", "diff", (folder_.path() / "far").string(), (folder_.path() / "near").string()});
  EXPECT_EQ(same.exit_code, 0) << same.out << same.err;
}

TEST_F(RemoteCliTest, WithoutAFolderForTheCacheItSaysWhichToGive) {
  ASSERT_EQ(index().exit_code, 0);
  const auto shown = show({});
  EXPECT_EQ(shown.exit_code, 2);
  EXPECT_THAT(shown.err, HasSubstr("--set store.folder=DIR"));
}

TEST_F(RemoteCliTest, AMissingShardIsTheUsersMistake) {
  const auto indexed =
      run({"data", "index", set_.root() + "/{7..8}.tar", "--out", index_folder(), "--quiet"});
  EXPECT_EQ(indexed.exit_code, 2);
  EXPECT_THAT(indexed.err, HasSubstr("there is no such object"));
}

TEST_F(RemoteCliTest, AnOwnerThatIsKilledAnywhereLeavesAGoodCache) {
  ASSERT_EQ(index().exit_code, 0);
  for (const int n : {1, 3, 5, 7}) {
    SCOPED_TRACE(n);
    const auto killed = show(cache(), {{"CHILIAD_FILE_FAULT", "any:cache/:" + std::to_string(n) + ":kill"}});
    EXPECT_EQ(killed.exit_code, -SIGKILL);
  }
  EXPECT_EQ(show(cache()).exit_code, 0);
}

}  // namespace
}  // namespace chiliad
