#include "chiliad/observe/jsonl_writer.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "chiliad/io/faults.h"
#include "tests/support/temp_dir.h"

namespace chiliad::observe {
namespace {

TEST(JsonlWriterTest, AppendsLines) {
  test::TempDir folder;
  const auto path = folder.path() / "m.jsonl";
  JsonlWriter(path).append("{\"a\":1}");
  JsonlWriter(path).append("{\"a\":2}");
  EXPECT_EQ(io::read_text(path, 1000), "{\"a\":1}\n{\"a\":2}\n");
}

TEST(JsonlWriterTest, TornLastLineSpoilsNoOther) {
  test::TempDir folder;
  const auto path = folder.path() / "m.jsonl";
  io::write_atomic(path, std::string_view("{\"a\":1}\n{\"a\""));
  JsonlWriter(path).append("{\"a\":3}");
  EXPECT_EQ(io::read_text(path, 1000), "{\"a\":1}\n{\"a\"\n{\"a\":3}\n");
}

TEST(JsonlWriterTest, NewlineInsideBecomesSpace) {
  test::TempDir folder;
  const auto path = folder.path() / "m.jsonl";
  JsonlWriter(path).append("a\nb");
  EXPECT_EQ(io::read_text(path, 1000), "a b\n");
}

#ifdef CHILIAD_FAULTS
TEST(JsonlWriterTest, FullDiskLosesLinesAndNothingElse) {
  test::TempDir folder;
  const auto path = folder.path() / "m.jsonl";
  JsonlWriter writer(path);
  writer.append("1");
  {
    io::ScopedFaultHook full([](io::FileOp op, const std::string&) {
      return op == io::FileOp::kWrite ? io::FaultAction{ENOSPC, false} : io::FaultAction{};
    });
    writer.append("2");
    writer.append("3");
  }
  writer.append("4");
  EXPECT_EQ(writer.num_lost(), 2);
  EXPECT_EQ(io::read_text(path, 1000), "1\n\n4\n");
}
#endif

}  // namespace
}  // namespace chiliad::observe
