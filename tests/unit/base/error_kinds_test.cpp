#include "chiliad/base/error_kinds.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

namespace chiliad {
namespace {

TEST(ErrorKindsTest, NamesComeBackAsKinds) {
  for (const auto kind : {ErrorKind::kInvalidInput, ErrorKind::kUnavailable, ErrorKind::kCorruptData,
                          ErrorKind::kPeerLost, ErrorKind::kInternal}) {
    EXPECT_EQ(kind_from_name(kind_name(kind)), kind) << kind_name(kind);
  }
  EXPECT_EQ(kind_from_name("other"), ErrorKind::kInternal);
}

TEST(ErrorKindsTest, ExitCodesAreTheDocumentedOnes) {
  EXPECT_EQ(exit_code(InvalidInput("a", "b")), 2);
  EXPECT_EQ(exit_code(Unavailable("a", "b")), 1);
  EXPECT_EQ(exit_code(CorruptData("a", "b")), 3);
  EXPECT_EQ(exit_code(PeerLost("a", "b")), 4);
  EXPECT_EQ(exit_code(InternalError("a", "b")), 5);
  EXPECT_EQ(exit_code(std::bad_alloc()), 1);
  EXPECT_EQ(exit_code(std::runtime_error("x")), 5);
}

}  // namespace
}  // namespace chiliad
