#include "chiliad/dataset/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chiliad/dataset/build_index.h"
#include "tests/unit/dataset/source_tree.h"

namespace chiliad::dataset {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class VerifyTest : public ::testing::Test {
 protected:
  VerifyTest() {
    tree_.add_picture("a.png", 40, 40);
    tree_.add("a.txt", "a caption");
    tree_.add_picture("b.png", 30, 10);
    tree_.add("b.txt", "another one");
    (void)build_index(tree_.source(), tree_.out(), {}, {});
  }

  VerifyReport check() const { return verify(index::Index::open(tree_.out()), 2, {}); }
  std::vector<std::string> findings() const {
    std::vector<std::string> lines;
    for (const Problem& problem : check().problems) lines.push_back(problem.file + ": " + problem.what);
    return lines;
  }

  SourceTree tree_;
};

TEST_F(VerifyTest, FindsNothingInAnUntouchedSource) {
  EXPECT_TRUE(check().problems.empty());
}

TEST_F(VerifyTest, ChecksEveryPart) {
  EXPECT_EQ(check().num_parts, 4);
}

TEST_F(VerifyTest, FindsChangedBytesOfTheSameSize) {
  tree_.add("b.txt", "another two");
  EXPECT_THAT(findings(), Contains(HasSubstr("b.txt: 11 bytes at 0: checksum")));
}

TEST_F(VerifyTest, FindsAnotherSize) {
  tree_.add("b.txt", "more");
  EXPECT_THAT(findings(), Contains(HasSubstr("b.txt: has 4 bytes, expected 11")));
}

TEST_F(VerifyTest, FindsAMissingFile) {
  std::filesystem::remove(tree_.source() / "a.png");
  EXPECT_THAT(findings(), Contains("a.png: is missing"));
}

TEST_F(VerifyTest, NamesTheSample) {
  tree_.add("b.txt", "another two");
  EXPECT_EQ(check().problems.back().key, "b");
}

}  // namespace
}  // namespace chiliad::dataset
