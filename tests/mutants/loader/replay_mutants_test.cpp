#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "chiliad/dataset/build_index.h"
#include "chiliad/io/file.h"
#include "chiliad/loader/loader.h"
#include "tests/support/picture_set.h"
#include "tests/support/synthetic_index.h"
#include "tests/support/temp_dir.h"

namespace chiliad::loader {
namespace {

/// The audit of replays: a step whose damaged picture was mended meanwhile is handed over as it was the first
/// time.
bool a_replay_is_the_same() {
  const test::TempDir folder;
  test::write_pictures(folder.path() / "pictures", 12);
  test::index_pictures(folder.path() / "pictures", folder.path() / "index");
  const auto index = index::Index::open(folder.path() / "index");
  spec::DataOptions options;
  options.batch = 12;
  const stepplan::Plan plan(index, options, 1, test::byte_tokens(index));
  LoaderOptions loading;
  loading.pack.work = test::transformer_work();
  const auto path = folder.path() / "pictures" / (test::picture_name(3) + ".png");
  const std::string good = io::read_text(path, 1 << 20);
  test::flip_bit(path);
  const RankStep first = Loader(index, plan, {}, 0, 1, loading).next();
  io::write_atomic(path, good);
  stepplan::Journal journal;
  for (const Verdict& verdict : first.verdicts) journal.add({1, verdict.sample, verdict.reason});
  const RankStep again = Loader(index, plan, journal, 0, 1, loading).next();
  return first.verdicts.size() == 1 && again.verdicts.size() == 1 && again.consumed == first.consumed &&
         again.verdicts[0].reason == first.verdicts[0].reason;
}

TEST(ReplayMutantTest, AuditCatchesFindingsThatAreForgotten) {
  ASSERT_TRUE(a_replay_is_the_same());
  setenv("CHILIAD_PLANTED_BUG", "findings_forgotten", 1);
  EXPECT_FALSE(a_replay_is_the_same());
  unsetenv("CHILIAD_PLANTED_BUG");
}

}  // namespace
}  // namespace chiliad::loader
