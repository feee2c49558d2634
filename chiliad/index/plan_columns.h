#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "chiliad/base/hash.h"
#include "chiliad/index/sample_columns.h"
#include "chiliad/io/file.h"

namespace chiliad::index {

/// Derived columns of a large index: what planning reads of its samples, block by block in one row of files
/// (docs/formats/plan.md), so that a window is read without its sidecars. Keyed by the index and by whoever
/// counted the captions' tokens.
[[nodiscard]] std::filesystem::path plan_columns_folder(const std::filesystem::path& index,
                                                        const Digest& data, const Digest& tokenizer);

/// Writes one file of them: blocks in order, then their places. A pure function of the blocks.
class PlanColumnsWriter {
 public:
  PlanColumnsWriter(std::filesystem::path folder, uint32_t number);
  void add(const BlockRows& rows);
  /// Durable on return; without it there is no file.
  void finish();

 private:
  std::filesystem::path path_;
  std::filesystem::path unfinished_;
  io::File file_;
  std::vector<uint32_t> places_;  // of the blocks, in units of 16 bytes
  std::vector<std::byte> buffer_;
  int64_t num_samples_ = 0;
  int64_t written_ = 0;
};

/// Token count of caption `caption` of shard `shard`.
using CountTokens = std::function<uint32_t(uint32_t shard, uint32_t caption)>;

/// Makes what is missing in `folder` for the shards [first_shard, end_shard) of `index`, a file every
/// `file_samples` samples; files that are there are kept, so an interrupted run goes on. Two processes may do
/// it at once. `tokens` may be null: no counts. `progress`: samples done, of all.
void make_plan_columns(const Index& index, uint32_t first_shard, uint32_t end_shard,
                       const std::filesystem::path& folder, const CountTokens& tokens,
                       const std::function<void(int64_t, int64_t)>& progress,
                       int64_t file_samples = int64_t{1} << 24);

/// The columns that lie in a folder. Memory: 4 bytes a block.
class PlanColumns : public SampleColumns {
 public:
  /// `shards`: samples of each shard, from the manifest; numbers begin at `first_shard` and `first_sample`.
  /// Throws CorruptData where the files are not whole or of other shards.
  PlanColumns(std::filesystem::path folder, std::vector<int64_t> first_samples, uint32_t first_shard);

  [[nodiscard]] int64_t num_samples() const override { return num_samples_; }
  [[nodiscard]] int64_t num_blocks() const override { return static_cast<int64_t>(first_block_.back()); }
  void read(int64_t block, BlockRows& rows) const override;
  void will_need(const std::vector<int64_t>& blocks) const override;
  /// Bytes that blocks take.
  [[nodiscard]] int64_t num_bytes() const;

 private:
  struct OpenedFile {
    io::File file;
    std::vector<uint32_t> places;
  };
  struct Place {
    const OpenedFile* file;
    int64_t offset;
    int64_t size;
  };
  [[nodiscard]] Place place_of(int64_t block) const;

  std::filesystem::path folder_;
  std::vector<int64_t> first_samples_;  // of each shard, and the end; numbers in the index
  uint32_t first_shard_;
  int64_t num_samples_ = 0;
  std::vector<OpenedFile> files_;
  std::vector<int64_t> first_block_{0};  // of each file, and the end
};

/// Whether `folder` holds all of the columns.
[[nodiscard]] bool has_plan_columns(const std::filesystem::path& folder);
/// Says that the files are complete: `num_files` of them.
void finish_plan_columns(const std::filesystem::path& folder, int64_t num_files);

/// A small derived table: a number for each block, and totals. Keyed by its path.
struct BlockTotals {
  std::vector<uint32_t> blocks;
  std::vector<int64_t> totals;
};
void write_block_totals(const std::filesystem::path& path, const BlockTotals& totals);
/// Throws CorruptData.
[[nodiscard]] BlockTotals read_block_totals(const std::filesystem::path& path);

}  // namespace chiliad::index
