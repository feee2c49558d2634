#include "chiliad/python/block_cache.h"

#include "chiliad/base/error.h"
#include "chiliad/loader/cached_parts.h"
#include "chiliad/loader/run_inputs.h"
#include "chiliad/remote/open_store.h"

namespace chiliad::python {

void BlockCache::take_over(const index::Index& index) {
  constexpr int64_t kReaders = 16;  // how many ranks this machine has is not known
  std::lock_guard lock(mutex_);
  if (owner_ != nullptr || closed_) return;
  try {
    owner_ = std::make_unique<store::CacheOwner>(
        loader::cache_options(file_, index, kReaders),
        remote::store_factory(file_.store.stall_s, loader::store_profiles(file_, index)));
  } catch (const Unavailable&) {
    // Another process was quicker; or the disk is in trouble, which the reader meets at its deadline.
  }
}

void BlockCache::reached(const stepplan::Plan& plan, int64_t step) {
  std::lock_guard lock(mutex_);
  if (owner_ == nullptr) return;
  if (!planned_) {
    const auto blocks = std::make_shared<const loader::PartBlocks>(plan.index());  // with the owner's thread
    owner_->plan_ahead(step, [&plan, blocks](int64_t at) -> std::optional<std::vector<store::BlockSpec>> {
      return blocks->blocks_of(plan.select(at, {}));
    });
    planned_ = true;
  }
  owner_->reached(step);
}

void BlockCache::close() {
  std::unique_ptr<store::CacheOwner> ended;
  std::lock_guard lock(mutex_);
  closed_ = true;
  ended = std::move(owner_);
}

}  // namespace chiliad::python
