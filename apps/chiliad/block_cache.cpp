#include "apps/chiliad/block_cache.h"

#include "chiliad/loader/cached_parts.h"
#include "chiliad/remote/open_store.h"

namespace chiliad::cli {

std::unique_ptr<store::CacheOwner> own_block_cache(const spec::RunFile& file, const index::Index& index,
                                                   int64_t num_readers) {
  if (loader::remote_roots(index).empty()) return nullptr;
  return std::make_unique<store::CacheOwner>(
      loader::cache_options(file, index, num_readers),
      remote::store_factory(file.store.stall_s, loader::store_profiles(file, index)));
}

std::unique_ptr<store::CacheOwner> join_block_cache(const spec::RunFile& file, const index::Index& index) {
  if (loader::remote_roots(index).empty()) return nullptr;
  if (!store::block_folder_owner(file.store.folder).empty()) return nullptr;
  return own_block_cache(file, index, 1);
}

void plan_ahead(store::CacheOwner& owner, const spec::RunFile& file, const index::Index& index,
                const stepplan::Plan& plan, int64_t first_step) {
  const auto blocks = std::make_shared<const loader::PartBlocks>(index);  // shared with the owner's thread
  owner.plan_ahead(
      first_step,
      [&plan, blocks, end = file.run.steps](int64_t step) -> std::optional<std::vector<store::BlockSpec>> {
        if (step >= end) return std::nullopt;
        return blocks->blocks_of(plan.select(step, {}));
      });
}

}  // namespace chiliad::cli
