#pragma once

#include <cstdint>
#include <memory>

#include "chiliad/index/index.h"
#include "chiliad/loader/run_inputs.h"
#include "chiliad/spec/run_file.h"
#include "chiliad/store/cache_owner.h"

namespace chiliad::cli {

/// Makes this process the owner of the run's block cache, for `num_readers` processes and itself; null where
/// the data of `index` is in files. Throws as store::CacheOwner.
[[nodiscard]] std::unique_ptr<store::CacheOwner> own_block_cache(const spec::RunFile& file,
                                                                 const index::Index& index,
                                                                 int64_t num_readers);

/// The same where no process owns it; null too where one does, which then serves this one.
[[nodiscard]] std::unique_ptr<store::CacheOwner> join_block_cache(const spec::RunFile& file,
                                                                  const index::Index& index);

/// Fetches ahead of training from `first_step` on, while `plan` and `index` live.
void plan_ahead(store::CacheOwner& owner, const spec::RunFile& file, const index::Index& index,
                const stepplan::Plan& plan, int64_t first_step);

}  // namespace chiliad::cli
