#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "chiliad/base/clock.h"
#include "chiliad/loader/batch.h"
#include "chiliad/loader/loader_options.h"
#include "chiliad/stepplan/plan.h"

namespace chiliad::loader {

/// Loads this rank's items several steps ahead on native threads: read -> verify checksum -> decode ->
/// cover/crop/flip -> slot. Work begins and finishes in any order and is handed over in plan order; the
/// output depends on nothing but the plan. Threads inherit the binding of the one that makes the loader.
/// `next` is for one thread; amendments may be added between calls.
class Loader {
 public:
  /// `plan` outlives the loader. Starts at `first_step`.
  Loader(const index::Index& index, const stepplan::Plan& plan, stepplan::Journal journal, int64_t first_step,
         int64_t end_step, LoaderOptions options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next step's batches. Throws Unavailable if storage does not answer within the deadline (a timeout is
  /// never a verdict), and InternalError past end_step.
  [[nodiscard]] RankStep next();
  /// Waits until `next` need not wait, at most so long; says whether it is so. For callers that look after
  /// something else meanwhile. Throws Unavailable as `next`, also where calls together waited for so long.
  [[nodiscard]] bool wait(Nanoseconds most);
  /// Agreed amendments hold from their step on; steps already loaded get weight 0 and zero pixels for those
  /// samples.
  void amend(const std::vector<stepplan::Amendment>& amendments);
  /// Loads an item of a batch that was handed over once more, elsewhere: the digest of its data now. For
  /// whoever doubts what he was given. Throws Unavailable.
  [[nodiscard]] uint64_t digest_again(const Batch& batch, size_t item);
  [[nodiscard]] LoaderStats stats() const;
  /// Stops and joins; `next` refuses afterwards.
  void close();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace chiliad::loader
