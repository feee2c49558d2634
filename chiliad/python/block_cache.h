#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "chiliad/index/index.h"
#include "chiliad/spec/run_file.h"
#include "chiliad/stepplan/plan.h"
#include "chiliad/store/cache_owner.h"

namespace chiliad::python {

/// The block cache of a run whose data is remote: owned by the first process of the machine that needs it,
/// and by the next one when that ends. Thread-safe.
class BlockCache {
 public:
  explicit BlockCache(spec::RunFile file) : file_(std::move(file)) {}

  /// Makes this process the owner unless another one is. `index` outlives it.
  void take_over(const index::Index& index);
  /// Where this process is the owner: fetches ahead of `step`, and keeps what is used next. `plan` outlives
  /// it.
  void reached(const stepplan::Plan& plan, int64_t step);
  /// Ends ownership.
  void close();

 private:
  const spec::RunFile file_;
  std::mutex mutex_;  // guards the rest
  bool closed_ = false;
  bool planned_ = false;
  std::unique_ptr<store::CacheOwner> owner_;
};

}  // namespace chiliad::python
