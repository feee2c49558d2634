#include <memory>
#include <vector>

#include "chiliad/train/trainer.h"

namespace chiliad::train {

stepplan::TokenCount make_token_count(const index::Index& index, const Digest& tokenizer) {
  auto columns = std::make_shared<std::vector<index::TokenColumn>>();  // shared by the copies of the function
  for (const auto& shard : index.shards()) {
    columns->push_back(index::read_token_column(
        index::token_column_path(index.folder(), shard.content, tokenizer), shard.captions.size()));
  }
  return [columns](uint32_t shard, uint32_t caption) { return (*columns)[shard].caption_tokens[caption]; };
}

}  // namespace chiliad::train
