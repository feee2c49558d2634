#include "chiliad/store/block_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "chiliad/base/error.h"
#include "chiliad/base/rng.h"
#include "chiliad/io/faults.h"
#include "tests/support/block_kit.h"
#include "tests/support/temp_dir.h"

namespace chiliad::store {
namespace {

using test::BlockKit;
using Room = BlockCache::Room;

constexpr int64_t kFileBytes = 1000 + kBlockFooterBytes;

class BlockCacheTest : public ::testing::Test {
 protected:
  FetchedBlock fetch(const BlockSpec& spec) {
    ++fetches_;
    if (fail_) throw Unavailable("test", "the store is away");
    const auto text = kit_.bytes.substr(static_cast<size_t>(spec.offset), static_cast<size_t>(spec.length));
    const auto bytes = std::as_bytes(std::span(text));
    return {{bytes.begin(), bytes.end()}, damaged_};
  }
  void open(int64_t blocks) {
    cache_.reset();
    folder_.reset();
    folder_ = std::make_unique<BlockFolder>(root_.path() / "cache");
    cache_ = std::make_unique<BlockCache>(
        *folder_, future_, [this](const BlockSpec& spec) { return fetch(spec); },
        BlockCache::Options{blocks * kFileBytes, std::chrono::seconds(60)}, clock_);
  }
  Room prefetch(size_t block) {
    const Room room = cache_->make_room_ahead(kit_.blocks[block]);
    if (room == Room::kMade) cache_->fetch_ahead(kit_.blocks[block]);
    return room;
  }
  std::string read(size_t block) {
    const auto lease = cache_->acquire(kit_.blocks[block]);
    return lease.has_value() ? text_of(*lease) : "passed through";
  }
  static std::string text_of(const BlockCache::Lease& lease) {
    std::string text(static_cast<size_t>(lease.num_bytes()), '\0');
    lease.file().read_at(0, std::as_writable_bytes(std::span(text)));
    return text;
  }
  std::filesystem::path file_of(size_t block) const {
    return root_.path() / "cache/blocks" / (kit_.blocks[block].key().hex() + ".block");
  }
  void flip_byte(size_t block, int64_t at) const {
    std::string text = io::read_text(file_of(block), 1 << 20);
    text[static_cast<size_t>(at)] ^= 1;
    io::File file = io::File::create(file_of(block));
    file.write(text);
  }

  BlockKit kit_{20};
  test::TempDir root_;
  SystemClock clock_;
  FutureUse future_;
  std::unique_ptr<BlockFolder> folder_;
  std::unique_ptr<BlockCache> cache_;
  int fetches_ = 0;
  bool damaged_ = false;
  bool fail_ = false;
};

TEST_F(BlockCacheTest, FetchesABlockOnce) {
  open(4);
  EXPECT_EQ(read(1), kit_.text_of(1));
  EXPECT_EQ(read(1), kit_.text_of(1));
  EXPECT_EQ(fetches_, 1);
  cache_->check_ledger();
}

TEST_F(BlockCacheTest, KeepsBlocksOverARestart) {
  open(4);
  static_cast<void>(read(1));
  open(4);
  EXPECT_EQ(read(1), kit_.text_of(1));
  EXPECT_EQ(fetches_, 1);
}

TEST_F(BlockCacheTest, FetchesADamagedFileAgain) {
  open(4);
  static_cast<void>(read(1));
  flip_byte(1, 500);
  open(4);
  EXPECT_EQ(read(1), kit_.text_of(1));
  EXPECT_EQ(fetches_, 2);
  EXPECT_EQ(cache_->stats().dropped, 1);
  cache_->check_ledger();
}

TEST_F(BlockCacheTest, DropsFilesWithAWrongFooterAtTheStart) {
  open(4);
  static_cast<void>(read(1));
  flip_byte(1, 1010);
  open(4);
  EXPECT_FALSE(std::filesystem::exists(file_of(1)));
  cache_->check_ledger();
}

TEST_F(BlockCacheTest, DropsWhatIsOverASmallerBound) {
  open(4);
  for (size_t i = 0; i < 4; ++i) static_cast<void>(read(i));
  open(2);
  EXPECT_EQ(cache_->stats().blocks, 2);
  cache_->check_ledger();
}

TEST_F(BlockCacheTest, EvictsTheBlockThatIsUsedLatest) {
  open(3);
  future_.append(10, {kit_.blocks[0].key()});
  future_.append(30, {kit_.blocks[1].key()});
  future_.append(50, {kit_.blocks[2].key()});
  for (size_t i = 0; i < 4; ++i) static_cast<void>(read(i));
  EXPECT_FALSE(cache_->has(kit_.blocks[2].key()));
  EXPECT_TRUE(cache_->has(kit_.blocks[0].key()));
}

TEST_F(BlockCacheTest, KeepsBlocksInUseAndPassesThroughWhereNothingElseFits) {
  open(1);
  const auto lease = cache_->acquire(kit_.blocks[0]);
  ASSERT_TRUE(lease.has_value());
  EXPECT_EQ(read(1), "passed through");
  EXPECT_EQ(text_of(*lease), kit_.text_of(0));
  EXPECT_EQ(cache_->stats().passed_through, 1);
  cache_->check_ledger();
}

TEST_F(BlockCacheTest, FetchingAheadDropsNothingThatIsUsedBefore) {
  open(1);
  future_.append(5, {kit_.blocks[2].key()});
  future_.append(10, {kit_.blocks[0].key()});
  future_.append(20, {kit_.blocks[1].key()});
  ASSERT_EQ(prefetch(0), Room::kMade);
  EXPECT_EQ(prefetch(0), Room::kNotNeeded);
  EXPECT_EQ(prefetch(1), Room::kNone);
  EXPECT_TRUE(cache_->has(kit_.blocks[0].key()));
  EXPECT_EQ(prefetch(2), Room::kMade);
}

// A thread that fetches ahead may come late: the steps that it wanted the block for are over.
TEST_F(BlockCacheTest, FetchingAheadDropsNothingForAUseThatIsOver) {
  open(1);
  future_.append(5, {kit_.blocks[1].key()});
  future_.append(20, {kit_.blocks[0].key()});
  future_.append(90, {kit_.blocks[1].key()});
  ASSERT_EQ(prefetch(0), Room::kMade);
  future_.reached(6);
  EXPECT_EQ(prefetch(1), Room::kNone);
  future_.reached(91);
  EXPECT_EQ(prefetch(1), Room::kNotNeeded);
  EXPECT_TRUE(cache_->has(kit_.blocks[0].key()));
  EXPECT_EQ(fetches_, 1);
}

// From the moment that room was made on, a reader gets what is fetched ahead.
TEST_F(BlockCacheTest, ReadersWaitForWhatIsFetchedAhead) {
  open(1);
  future_.append(5, {kit_.blocks[1].key()});
  ASSERT_EQ(cache_->make_room_ahead(kit_.blocks[1]), Room::kMade);
  std::thread reader([&] { EXPECT_EQ(read(1), kit_.text_of(1)); });
  cache_->fetch_ahead(kit_.blocks[1]);
  reader.join();
  EXPECT_EQ(fetches_, 1);
}

TEST_F(BlockCacheTest, AFailedFetchAheadGivesItsRoomUp) {
  open(1);
  future_.append(5, {kit_.blocks[1].key()});
  ASSERT_EQ(cache_->make_room_ahead(kit_.blocks[1]), Room::kMade);
  fail_ = true;
  EXPECT_THROW(cache_->fetch_ahead(kit_.blocks[1]), Unavailable);
  fail_ = false;
  EXPECT_EQ(read(0), kit_.text_of(0));
  cache_->check_ledger();
}

TEST_F(BlockCacheTest, ABlockLargerThanTheCachePassesThrough) {
  open(1);
  BlockSpec large = kit_.blocks[0];
  large.length = 3000;
  EXPECT_FALSE(cache_->acquire(large).has_value());
  EXPECT_EQ(fetches_, 0);
}

TEST_F(BlockCacheTest, DistrustFetchesAgainWhileOthersStillReadTheOldFile) {
  open(4);
  const auto lease = cache_->acquire(kit_.blocks[0]);
  cache_->distrust(kit_.blocks[0].key());
  EXPECT_EQ(read(0), kit_.text_of(0));
  EXPECT_EQ(fetches_, 2);
  EXPECT_EQ(text_of(*lease), kit_.text_of(0));
}

TEST_F(BlockCacheTest, DoesNotFetchAgainWhatIsDamagedInTheStore) {
  damaged_ = true;
  open(4);
  static_cast<void>(read(0));
  cache_->distrust(kit_.blocks[0].key());
  static_cast<void>(read(0));
  EXPECT_EQ(fetches_, 1);
}

TEST_F(BlockCacheTest, AFullDiskPassesThroughAndLeavesNothing) {
  open(4);
  static_cast<void>(read(0));
  const io::ScopedFaultHook hook([](io::FileOp op, const std::string& path) {
    const bool hit = op == io::FileOp::kWrite && path.ends_with(".tmp");
    return io::FaultAction{hit ? ENOSPC : 0, hit};
  });
  EXPECT_EQ(read(1), "passed through");
  EXPECT_EQ(read(2), "passed through");
  EXPECT_EQ(fetches_, 2);  // the disk is left alone for a while
  EXPECT_EQ(read(0), kit_.text_of(0));
  cache_->check_ledger();
}

TEST_F(BlockCacheTest, AFetchThatFailsLeavesRoomAndNoFile) {
  folder_ = std::make_unique<BlockFolder>(root_.path() / "cache");
  BlockCache cache(
      *folder_, future_, [](const BlockSpec&) -> FetchedBlock { throw Unavailable("test", "down"); },
      {kFileBytes, std::chrono::seconds(60)}, clock_);
  EXPECT_THROW(static_cast<void>(cache.acquire(kit_.blocks[0])), Unavailable);
  EXPECT_EQ(cache.stats().bytes, 0);
  cache.check_ledger();
}

TEST_F(BlockCacheTest, ASecondOwnerIsRefusedWithTheFirstOnesProcess) {
  open(4);
  try {
    const BlockFolder second(root_.path() / "cache");
    FAIL();
  } catch (const Unavailable& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr(std::to_string(::getpid())));
  }
}

TEST_F(BlockCacheTest, RefusesAFolderWithSomethingElseInIt) {
  io::make_folders(root_.path() / "cache");
  io::write_atomic(root_.path() / "cache/thesis.txt", "all of it");
  try {
    open(4);
    FAIL();
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("thesis.txt"));
  }
  EXPECT_EQ(io::read_text(root_.path() / "cache/thesis.txt", 100), "all of it");
}

TEST_F(BlockCacheTest, NeverDeletesWhatItDidNotMake) {
  open(4);
  static_cast<void>(read(0));
  const auto blocks = root_.path() / "cache/blocks";
  const std::string key = kit_.blocks[1].key().hex();
  const std::vector<std::string> names{"notes.txt", "x.block", key.substr(1) + ".block", key + ".blocks"};
  for (const std::string& name : names) io::write_atomic(blocks / name, "mine");
  io::make_folders(blocks / (key + ".block"));
  std::filesystem::create_symlink("/dev/null", blocks / (kit_.blocks[2].key().hex() + ".block"));
  open(1);
  for (size_t i = 3; i < 8; ++i) static_cast<void>(read(i));
  for (const std::string& name : names) EXPECT_TRUE(std::filesystem::exists(blocks / name)) << name;
  EXPECT_TRUE(std::filesystem::is_directory(blocks / (key + ".block")));
  EXPECT_TRUE(std::filesystem::is_symlink(blocks / (kit_.blocks[2].key().hex() + ".block")));
}

/// Misses of a cache of `room` blocks that drops the one used least recently.
int misses_of_lru(const std::vector<size_t>& uses, size_t room) {
  std::vector<size_t> kept;
  int misses = 0;
  for (const size_t use : uses) {
    const auto found = std::find(kept.begin(), kept.end(), use);
    if (found == kept.end()) {
      ++misses;
      if (kept.size() == room) kept.erase(kept.begin());
    } else {
      kept.erase(found);
    }
    kept.push_back(use);
  }
  return misses;
}

/// Misses of the best that any cache can do (Belady).
int fewest_misses(const std::vector<size_t>& uses, size_t room) {
  std::set<size_t> kept;
  int misses = 0;
  for (size_t i = 0; i < uses.size(); ++i) {
    if (kept.contains(uses[i])) continue;
    ++misses;
    if (kept.size() == room) {
      const auto next = [&](size_t block) {
        return std::find(uses.begin() + static_cast<ptrdiff_t>(i) + 1, uses.end(), block) - uses.begin();
      };
      kept.erase(
          *std::max_element(kept.begin(), kept.end(), [&](size_t a, size_t b) { return next(a) < next(b); }));
    }
    kept.insert(uses[i]);
  }
  return misses;
}

// Steps far apart, so that each use counts by itself.
TEST_F(BlockCacheTest, MissesAsFewAsPossibleWhereThePlanIsKnown) {
  constexpr size_t kRoom = 5;
  constexpr int64_t kApart = 100;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    std::vector<size_t> uses;
    for (int i = 0; i < 120; ++i) uses.push_back(rng.below(12));
    future_.clear();
    std::filesystem::remove_all(root_.path() / "cache");
    fetches_ = 0;
    open(kRoom);
    for (size_t i = 0; i < uses.size(); ++i)
      future_.append(static_cast<int64_t>(i) * kApart, {kit_.blocks[uses[i]].key()});
    for (size_t i = 0; i < uses.size(); ++i) {
      future_.reached(static_cast<int64_t>(i) * kApart);
      ASSERT_EQ(read(uses[i]), kit_.text_of(uses[i]));
    }
    EXPECT_EQ(fetches_, fewest_misses(uses, kRoom));
    EXPECT_LT(fetches_, misses_of_lru(uses, kRoom));
  }
}

// Reads, leases, distrust, damage, restarts and a disk that is sometimes full, in any order.
TEST_F(BlockCacheTest, TheLedgerIsTheFilesWhateverHappens) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    std::filesystem::remove_all(root_.path() / "cache");
    int64_t room = 1 + static_cast<int64_t>(rng.below(6));
    open(room);
    bool full = false;
    const io::ScopedFaultHook hook([&](io::FileOp op, const std::string& path) {
      const bool hit = full && op == io::FileOp::kWrite && path.ends_with(".tmp");
      return io::FaultAction{hit ? ENOSPC : 0, hit};
    });
    std::vector<std::pair<size_t, BlockCache::Lease>> leases;
    for (int i = 0; i < 60; ++i) {
      const size_t block = rng.below(10);
      switch (rng.below(8)) {
        case 0:
          cache_->distrust(kit_.blocks[block].key());
          break;
        case 1:
          leases.clear();
          room = 1 + static_cast<int64_t>(rng.below(6));
          open(room);
          break;
        case 2:
          leases.clear();
          break;
        case 3:
          full = rng.below(4) == 0;
          break;
        case 4:
          future_.append(i, {kit_.blocks[block].key()});
          static_cast<void>(prefetch(block));
          break;
        default:
          if (auto lease = cache_->acquire(kit_.blocks[block])) {
            ASSERT_EQ(text_of(*lease), kit_.text_of(block));
            leases.emplace_back(block, *std::move(lease));
          }
      }
      ASSERT_NO_THROW(cache_->check_ledger());
      for (const auto& [held, lease] : leases) ASSERT_EQ(text_of(lease), kit_.text_of(held));
    }
    leases.clear();
  }
}

}  // namespace
}  // namespace chiliad::store
