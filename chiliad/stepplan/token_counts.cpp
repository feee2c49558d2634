#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/stepplan/plan.h"

namespace chiliad::stepplan {
namespace {

constexpr size_t kMaxColumns = 64;  // of an index that is not in memory

/// Token columns, read when asked for.
class TokenColumns {
 public:
  TokenColumns(const index::Index& index, const Digest& tokenizer) : index_(index), tokenizer_(tokenizer) {}

  uint32_t count(uint32_t shard, uint32_t caption) {
    std::lock_guard lock(mutex_);
    auto found = columns_.find(shard);
    if (found == columns_.end()) {
      if (columns_.size() >= kMaxColumns && !index_.is_loaded()) columns_.erase(columns_.begin());
      found = columns_.emplace(shard, read(shard)).first;
    }
    return found->second.caption_tokens.at(caption);
  }

  [[nodiscard]] index::TokenColumn read(uint32_t shard) const {
    const auto columns = index_.shard(shard);
    const auto path = index::token_column_path(index_.folder_of(shard), columns->content, tokenizer_);
    return index::read_token_column(path, columns->captions.size());
  }

 private:
  const index::Index& index_;  // outlives it
  const Digest tokenizer_;
  std::mutex mutex_;  // guards the rest
  std::map<uint32_t, index::TokenColumn> columns_;
};

}  // namespace

TokenCount column_counts(const index::Index& index, const Digest& tokenizer) {
  // Both are shared by the copies of the returned function, as std::function demands.
  auto read_later = std::make_shared<TokenColumns>(index, tokenizer);
  if (!index.is_loaded())
    return [read_later](uint32_t shard, uint32_t caption) { return read_later->count(shard, caption); };
  auto columns = std::make_shared<std::vector<index::TokenColumn>>();
  for (uint32_t shard = 0; shard < index.num_shards(); ++shard) columns->push_back(read_later->read(shard));
  return [columns](uint32_t shard, uint32_t caption) { return (*columns)[shard].caption_tokens[caption]; };
}

}  // namespace chiliad::stepplan
