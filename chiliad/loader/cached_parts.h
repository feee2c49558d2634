#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "chiliad/index/index.h"
#include "chiliad/index/part_source.h"
#include "chiliad/loader/part_reader.h"
#include "chiliad/stepplan/plan.h"
#include "chiliad/store/block.h"
#include "chiliad/store/cache_client.h"

namespace chiliad::loader {

/// Roots of an index's members that are stores; empty: all its data is in files.
[[nodiscard]] std::vector<std::string> remote_roots(const index::Index& index);

/// Parts of the shards of an index whose root is a store, as the blocks that they are fetched in: the blocks
/// of the index, one range a file. Ranges of a file that lie apart by less than a request costs are one.
/// Thread-safe.
class PartBlocks {
 public:
  /// `index` outlives it.
  explicit PartBlocks(const index::Index& index) : index_(index) {}

  [[nodiscard]] store::BlockSpec block_of(const index::Shard& shard, const index::Part& part) const;
  /// Blocks of the pictures and captions that a step reads from stores, in order of first use.
  [[nodiscard]] std::vector<store::BlockSpec> blocks_of(const stepplan::Step& step) const;

 private:
  struct Table {
    std::vector<store::BlockSpec> blocks;                                 // by file and offset
    std::vector<std::pair<std::pair<uint32_t, int64_t>, size_t>> starts;  // file and offset -> block
  };
  [[nodiscard]] std::shared_ptr<const Table> table_of(const index::Shard& shard) const;
  [[nodiscard]] Table make_table(const index::Shard& shard) const;

  const index::Index& index_;
  mutable std::mutex mutex_;  // guards tables_
  // Shared with who looks something up in it, until then.
  mutable std::map<std::tuple<Digest, std::string, std::string>, std::shared_ptr<const Table>> tables_;
};

/// Parts of an index of which some or all lie in stores: those through the node's block cache, the others
/// from their files.
class CachedParts final : public index::PartSource {
 public:
  /// `index` outlives it.
  CachedParts(const index::Index& index, store::CacheClient::Options options)
      : blocks_(index), client_(std::move(options)), files_(index) {}

  [[nodiscard]] int64_t read(const index::Shard& shard, const index::Part& part,
                             std::span<std::byte> out) override;
  void distrust(const index::Shard& shard, const index::Part& part) override;
  [[nodiscard]] std::string change_note(const index::Shard& shard, const index::Part& part) override;

 private:
  PartBlocks blocks_;
  store::CacheClient client_;
  LocalParts files_;
};

}  // namespace chiliad::loader
