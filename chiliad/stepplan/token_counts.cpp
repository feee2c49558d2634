#include <memory>
#include <vector>

#include "chiliad/stepplan/plan.h"

namespace chiliad::stepplan {

TokenCount column_counts(const index::Index& index, const Digest& tokenizer) {
  // Shared by the copies of the returned function, as std::function demands.
  auto columns = std::make_shared<std::vector<index::TokenColumn>>();
  for (const auto& shard : index.shards()) {
    const auto path = index::token_column_path(index.folder(), shard.content, tokenizer);
    columns->push_back(index::read_token_column(path, shard.captions.size()));
  }
  return [columns](uint32_t shard, uint32_t caption) { return (*columns)[shard].caption_tokens[caption]; };
}

}  // namespace chiliad::stepplan
