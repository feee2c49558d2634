#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "chiliad/base/hash.h"
#include "chiliad/io/file.h"

namespace chiliad::store {

/// What stands behind a block's payload in its file (docs/formats/block-cache.md).
struct BlockFooter {
  Digest key;
  int64_t payload_bytes = 0;
  Digest payload;        ///< digest of the payload
  bool damaged = false;  ///< the store's own bytes are not those that were indexed: twice the same were read
};

inline constexpr int64_t kBlockFooterBytes = 64;

/// The files of a block cache: ROOT/CHILIAD-BLOCK-CACHE marks the root as ours, ROOT/blocks/KEY.block are
/// blocks. Deletes nothing else than regular files of such names in there. One owner at a time, by a lock.
class BlockFolder {
 public:
  /// Takes the root, or makes it. Throws InvalidInput where it holds files but no marker, Unavailable where
  /// another process owns it, with its number.
  explicit BlockFolder(const std::filesystem::path& root);

  struct Found {
    BlockFooter footer;
    int64_t file_bytes = 0;
  };
  /// Blocks of an earlier owner; files that it did not finish, and those whose footer is wrong, are removed.
  /// Payloads are not read.
  [[nodiscard]] std::vector<Found> recover();

  /// 1. KEY.block.tmp  2. fsync  3. rename. Throws Unavailable; nothing is left then.
  void write(const BlockFooter& footer, std::span<const std::byte> payload);
  [[nodiscard]] io::File open(const Digest& key) const;
  /// Whether the payload is what its footer says.
  [[nodiscard]] bool is_intact(const io::File& file, const BlockFooter& footer) const;
  void remove(const Digest& key);

  [[nodiscard]] const std::filesystem::path& root() const { return root_; }
  /// Sum of the sizes of all block files and unfinished ones; what the ledger must say.
  [[nodiscard]] int64_t bytes_on_disk() const;

 private:
  [[nodiscard]] std::filesystem::path path_of(const Digest& key) const;
  void take_root();
  void remove_ours(const std::filesystem::path& path) const;

  std::filesystem::path root_;
  std::filesystem::path blocks_;
  std::optional<io::FileLock> lock_;
};

/// Who owns the cache at `root`, for messages; empty where nobody does.
[[nodiscard]] std::string block_folder_owner(const std::filesystem::path& root);

}  // namespace chiliad::store
