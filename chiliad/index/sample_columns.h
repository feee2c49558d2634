#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "chiliad/index/index.h"

namespace chiliad::index {

/// What planning reads of the samples of one block.
struct BlockRows {
  struct Sample {
    uint64_t key_hash = 0;
    uint32_t width = 0;  ///< of its picture, after orientation; 0: it has none that can be used
    uint32_t height = 0;
    uint32_t first_caption = 0;  ///< in the shard
    uint32_t captions_at = 0;    ///< its first in `captions`
    uint16_t num_captions = 0;
  };
  struct Caption {
    uint32_t language = 0;
    uint32_t tokens = 0;
  };

  uint32_t shard = 0;
  int64_t first_sample = 0;  ///< in the index
  bool counted = false;      ///< captions have their tokens
  std::vector<Sample> samples;
  std::vector<Caption> captions;
};

/// The samples of an index as planning sees them, by block. Thread-safe.
class SampleColumns {
 public:
  SampleColumns() = default;
  virtual ~SampleColumns() = default;
  SampleColumns(const SampleColumns&) = delete;
  SampleColumns& operator=(const SampleColumns&) = delete;

  [[nodiscard]] virtual int64_t num_samples() const = 0;
  [[nodiscard]] virtual int64_t num_blocks() const = 0;
  /// Fills `rows`, whose memory it reuses. Throws CorruptData for damaged files.
  virtual void read(int64_t block, BlockRows& rows) const = 0;
  /// Says that these blocks are read next.
  virtual void will_need(const std::vector<int64_t>& blocks) const { static_cast<void>(blocks); }
};

/// Columns of the shards [first_shard, end_shard) of an index, without token counts. `index` outlives them.
class IndexColumns : public SampleColumns {
 public:
  IndexColumns(const Index& index, uint32_t first_shard, uint32_t end_shard);

  [[nodiscard]] int64_t num_samples() const override { return num_samples_; }
  [[nodiscard]] int64_t num_blocks() const override { return first_block_.back(); }
  void read(int64_t block, BlockRows& rows) const override;

 private:
  const Index& index_;
  uint32_t first_shard_;
  int64_t num_samples_ = 0;
  std::vector<int64_t> first_block_;  // of each shard, and the end
};

}  // namespace chiliad::index
