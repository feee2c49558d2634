#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "chiliad/io/faults.h"
#include "chiliad/store/block_cache.h"
#include "tests/support/block_kit.h"
#include "tests/support/temp_dir.h"

namespace chiliad::store {
namespace {

namespace fs = std::filesystem;

/// A cache of two blocks in `root`.
class Cache {
 public:
  explicit Cache(const fs::path& root)
      : folder_(root),
        cache_(
            folder_, future_,
            [this](const BlockSpec& spec) {
              ++fetches;
              const auto text =
                  kit.bytes.substr(static_cast<size_t>(spec.offset), static_cast<size_t>(spec.length));
              const auto bytes = std::as_bytes(std::span(text));
              return FetchedBlock{{bytes.begin(), bytes.end()}, false};
            },
            {2 * (1000 + kBlockFooterBytes), std::chrono::seconds(60)}, clock_) {}
  std::string read(size_t block) {
    const auto lease = cache_.acquire(kit.blocks[block]);
    if (!lease.has_value()) return "passed through";
    std::string text(1000, '\0');
    lease->file().read_at(0, std::as_writable_bytes(std::span(text)));
    return text;
  }
  void check_ledger() const { cache_.check_ledger(); }

  test::BlockKit kit{6};
  int fetches = 0;

 private:
  SystemClock clock_;
  FutureUse future_;
  BlockFolder folder_;
  BlockCache cache_;
};

/// Runs an owner in a child that is killed at its n-th file operation; returns whether that came.
bool killed_at(int64_t n, const fs::path& root) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::atomic<int64_t> seen{0};
    const io::ScopedFaultHook hook([&](io::FileOp, const std::string&) {
      if (++seen == n) ::kill(::getpid(), SIGKILL);
      return io::FaultAction{};
    });
    Cache cache(root);
    for (size_t i = 0; i < 5; ++i) static_cast<void>(cache.read(i));
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status);
}

TEST(CacheCrashTest, TheNextOwnerFindsAGoodCacheWhereverTheLastOneDied) {
  const test::TempDir folder;
  const fs::path root = folder.path() / "cache";
  int64_t n = 1;
  for (; killed_at(n, root); ++n) {
    SCOPED_TRACE(n);
    Cache cache(root);
    ASSERT_NO_THROW(cache.check_ledger());
    for (size_t i = 0; i < 6; ++i) ASSERT_EQ(cache.read(i), cache.kit.text_of(i));
    ASSERT_NO_THROW(cache.check_ledger());
    if (n % 3 == 0) fs::remove_all(root);  // from a fresh folder too
  }
  EXPECT_GT(n, 30);
}

}  // namespace
}  // namespace chiliad::store
