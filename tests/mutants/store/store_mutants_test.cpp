#include <gtest/gtest.h>

#include <cstdlib>

#include "chiliad/base/error.h"
#include "chiliad/store/block_cache.h"
#include "tests/support/block_kit.h"
#include "tests/support/temp_dir.h"

namespace chiliad::store {
namespace {

/// Sets a planted bug for its scope.
class Bug {
 public:
  explicit Bug(const char* name) { setenv("CHILIAD_PLANTED_BUG", name, 1); }
  ~Bug() { unsetenv("CHILIAD_PLANTED_BUG"); }
};

/// A cache of `room` blocks in `root`.
struct Cache {
  Cache(const std::filesystem::path& root, int64_t room)
      : folder(root),
        cache(
            folder, future,
            [this](const BlockSpec& spec) {
              const auto text =
                  kit.bytes.substr(static_cast<size_t>(spec.offset), static_cast<size_t>(spec.length));
              const auto bytes = std::as_bytes(std::span(text));
              return FetchedBlock{{bytes.begin(), bytes.end()}, false};
            },
            {room * (1000 + kBlockFooterBytes), std::chrono::seconds(60)}, clock) {}
  bool reads(size_t block) {
    const auto lease = cache.acquire(kit.blocks[block]);
    if (!lease.has_value()) return false;
    std::string text(1000, '\0');
    lease->file().read_at(0, std::as_writable_bytes(std::span(text)));
    return text == kit.text_of(block);
  }

  test::BlockKit kit{8};
  SystemClock clock;
  FutureUse future;
  BlockFolder folder;
  BlockCache cache;
};

bool keeps_foreign_files() {
  const test::TempDir root;
  { const Cache first(root.path() / "cache", 2); }
  const auto foreign = root.path() / "cache/blocks/notes.txt";
  io::write_atomic(foreign, "mine");
  const Cache second(root.path() / "cache", 2);
  return std::filesystem::exists(foreign);
}

TEST(StoreMutantTest, CatchesACacheThatDeletesForeignFiles) {
  ASSERT_TRUE(keeps_foreign_files());
  const Bug bug("cache_deletes_foreign");
  EXPECT_FALSE(keeps_foreign_files());
}

bool refuses_other_folders() {
  const test::TempDir root;
  io::write_atomic(root.path() / "thesis.txt", "all of it");
  try {
    const Cache cache(root.path(), 2);
    return false;
  } catch (const InvalidInput&) {
    return true;
  }
}

TEST(StoreMutantTest, CatchesACacheThatTakesAnyFolder) {
  ASSERT_TRUE(refuses_other_folders());
  const Bug bug("cache_takes_any_folder");
  EXPECT_FALSE(refuses_other_folders());
}

bool notices_a_flipped_bit() {
  const test::TempDir root;
  std::filesystem::path file;
  {
    Cache first(root.path() / "cache", 2);
    static_cast<void>(first.reads(0));
    file = root.path() / "cache/blocks" / (first.kit.blocks[0].key().hex() + ".block");
  }
  std::string text = io::read_text(file, 1 << 20);
  text[300] ^= 1;
  io::write_atomic(file, text);
  Cache second(root.path() / "cache", 2);
  return second.reads(0);
}

TEST(StoreMutantTest, CatchesACacheThatSkipsTheDigest) {
  ASSERT_TRUE(notices_a_flipped_bit());
  const Bug bug("cache_skips_digest");
  EXPECT_FALSE(notices_a_flipped_bit());
}

bool keeps_its_bound() {
  const test::TempDir root;
  Cache cache(root.path() / "cache", 2);
  for (size_t i = 0; i < 5; ++i) static_cast<void>(cache.reads(i));
  try {
    cache.cache.check_ledger();
    return true;
  } catch (const InternalError&) {
    return false;
  }
}

TEST(StoreMutantTest, CatchesACacheOverItsBound) {
  ASSERT_TRUE(keeps_its_bound());
  const Bug bug("cache_over_bound");
  EXPECT_FALSE(keeps_its_bound());
}

bool keeps_pinned_blocks() {
  const test::TempDir root;
  Cache cache(root.path() / "cache", 1);
  const auto lease = cache.cache.acquire(cache.kit.blocks[0]);
  static_cast<void>(cache.reads(1));
  return cache.cache.has(cache.kit.blocks[0].key());
}

TEST(StoreMutantTest, CatchesACacheThatEvictsWhatIsInUse) {
  ASSERT_TRUE(keeps_pinned_blocks());
  const Bug bug("cache_evicts_pinned");
  EXPECT_FALSE(keeps_pinned_blocks());
}

bool evicts_the_farthest() {
  const test::TempDir root;
  Cache cache(root.path() / "cache", 2);
  for (const auto& [step, block] : {std::pair{10, 0}, std::pair{50, 1}})
    cache.future.append(step, {cache.kit.blocks[static_cast<size_t>(block)].key()});
  for (size_t i = 0; i < 3; ++i) static_cast<void>(cache.reads(i));
  return cache.cache.has(cache.kit.blocks[0].key());
}

TEST(StoreMutantTest, CatchesACacheThatEvictsTheNearest) {
  ASSERT_TRUE(evicts_the_farthest());
  const Bug bug("cache_evicts_nearest");
  EXPECT_FALSE(evicts_the_farthest());
}

}  // namespace
}  // namespace chiliad::store
