#include "chiliad/io/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "chiliad/base/error.h"
#include "tests/support/temp_dir.h"

namespace chiliad::io {
namespace {

using testing::HasSubstr;

// To open a pipe would wait for its writer.
TEST(FileTest, PipesAreRefusedAtOnce) {
  const test::TempDir folder;
  const auto path = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  try {
    static_cast<void>(read_text(path, 100));
    FAIL();
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("is a pipe, expected a file"));
  }
}

TEST(FileTest, FoldersAndLargeFilesAreRefused) {
  const test::TempDir folder;
  write_atomic(folder.path() / "text", "four");
  EXPECT_EQ(read_text(folder.path() / "text", 4), "four");
  EXPECT_THROW(static_cast<void>(read_text(folder.path() / "text", 3)), InvalidInput);
  EXPECT_THROW(static_cast<void>(read_text(folder.path(), 100)), InvalidInput);
}

}  // namespace
}  // namespace chiliad::io
