#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "chiliad/base/clock.h"
#include "chiliad/base/error.h"
#include "chiliad/io/file.h"
#include "chiliad/store/block.h"
#include "chiliad/store/block_folder.h"
#include "chiliad/store/future_use.h"

namespace chiliad::store {

/// What was read of a block.
struct FetchedBlock {
  std::vector<std::byte> bytes;  ///< shorter than asked for where the object ends
  bool damaged = false;          ///< not what was indexed, and the same again when read twice
};

/// Counters since the start; a snapshot.
struct CacheStats {
  int64_t blocks = 0;
  int64_t bytes = 0;  ///< of files, with what is being fetched
  int64_t hits = 0;
  int64_t fetched = 0;  ///< blocks that came from the store
  int64_t evicted = 0;
  int64_t dropped = 0;         ///< found damaged on this disk
  int64_t passed_through = 0;  ///< reads that found no room here
};

/// Blocks on a local disk, never more than a bound. A block that must make room is the one that is used
/// latest, by what is known of the future; blocks in use stay. Where the disk is full or fails, reads pass
/// through, and the disk is tried again after a minute. Thread-safe.
class BlockCache {
 public:
  using Fetch = std::function<FetchedBlock(const BlockSpec&)>;
  struct Options {
    int64_t max_bytes = int64_t{64} << 30;  ///< of files
    Nanoseconds disk_pause = std::chrono::seconds(60);
  };

  /// `folder`, `future` and `clock` outlive it. Takes over what earlier owners left, within the bound.
  BlockCache(BlockFolder& folder, const FutureUse& future, Fetch fetch, const Options& options,
             const Clock& clock);

  /// Keeps a block from being dropped while it lives; the cache outlives it.
  class Lease {
   public:
    Lease(Lease&& other) noexcept
        : cache_(std::exchange(other.cache_, nullptr)),
          key_(other.key_),
          entry_(other.entry_),
          num_bytes_(other.num_bytes_),
          file_(std::move(other.file_)) {}
    Lease& operator=(Lease&&) = delete;
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease();
    /// The block's bytes, from its start.
    [[nodiscard]] const io::File& file() const { return file_; }
    /// Of the block; behind them the file holds what is not the object's.
    [[nodiscard]] int64_t num_bytes() const { return num_bytes_; }

   private:
    friend class BlockCache;
    Lease(BlockCache* cache, const Digest& key, uint64_t entry, int64_t num_bytes, io::File file)
        : cache_(cache), key_(key), entry_(entry), num_bytes_(num_bytes), file_(std::move(file)) {}
    BlockCache* cache_;
    Digest key_;
    uint64_t entry_;  // its number: a block that was distrusted is another entry when it comes back
    int64_t num_bytes_;
    io::File file_;
  };

  /// The block, fetched where it is not there; nothing where there is no room for it: read past the cache
  /// then. Throws as the fetch does.
  [[nodiscard]] std::optional<Lease> acquire(const BlockSpec& spec);
  /// What became of a block that should be fetched ahead.
  enum class Room {
    kMade,       ///< it is this caller's to fetch, by `fetch_ahead`
    kNotNeeded,  ///< it is there, or on its way, or no step to come is known to use it
    kNone,       ///< all that might be dropped is used earlier, or the disk is in trouble
  };
  /// Makes room for a block, and drops only blocks that are used later than it. Who reads the block waits for
  /// the fetch from here on.
  [[nodiscard]] Room make_room_ahead(const BlockSpec& spec);
  /// Fetches a block that room was made for. Throws as the fetch does; the room is given up then.
  void fetch_ahead(const BlockSpec& spec);
  /// Somebody found wrong bytes in it. The next `acquire` fetches it anew, unless it is known that the store
  /// has no other bytes.
  void distrust(const Digest& key);

  [[nodiscard]] bool has(const Digest& key) const;
  [[nodiscard]] CacheStats stats() const;
  /// Throws InternalError unless the ledger is the sum of the files on disk and within the bound. Only while
  /// nothing is being fetched.
  void check_ledger() const;

 private:
  struct Entry {
    uint64_t number = 0;
    BlockFooter footer{};
    int64_t bytes = 0;  // of the file
    int pins = 0;
    bool ready = false;     // else: being fetched
    bool verified = false;  // its payload was seen by this owner
    bool distrusted = false;
  };
  using Lock = std::unique_lock<std::mutex>;

  void recover();
  [[nodiscard]] bool make_room(int64_t bytes, int64_t for_step);
  [[nodiscard]] std::optional<Digest> next_victim(int64_t for_step);
  void find_victims();
  /// Returns whether the file is gone.
  bool drop(const Digest& key);
  [[nodiscard]] std::optional<Lease> lease_ready(const Digest& key, Lock& lock);
  void reserve(const BlockSpec& spec, const Digest& key);
  void fetch_reserved(const BlockSpec& spec, const Digest& key, Lock& lock);
  [[nodiscard]] bool disk_rests() const;
  void store_block(const Digest& key, const FetchedBlock& fetched, Lock& lock);
  void release(const Digest& key, uint64_t entry);
  void note_disk_trouble(const Error& error);

  BlockFolder& folder_;
  const FutureUse& future_;
  const Fetch fetch_;
  const Options options_;
  const Clock& clock_;

  mutable std::mutex mutex_;  // guards the rest
  std::condition_variable changed_;
  std::unordered_map<Digest, Entry, DigestHash> entries_;
  uint64_t next_number_ = 1;
  int64_t bytes_ = 0;                                // of all entries
  std::vector<std::pair<int64_t, Digest>> victims_;  // by next use when they were found, the farthest last
  std::optional<Nanoseconds> disk_bad_until_;
  CacheStats stats_;
};

}  // namespace chiliad::store
