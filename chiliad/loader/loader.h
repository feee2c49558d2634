#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "chiliad/base/clock.h"
#include "chiliad/loader/batch.h"
#include "chiliad/loader/item_loader.h"
#include "chiliad/stepplan/pack.h"
#include "chiliad/stepplan/plan.h"
#include "chiliad/text/document_encoder.h"

namespace chiliad::loader {

struct LoaderOptions {
  int rank = 0;
  stepplan::PackOptions pack{};
  int num_threads = 2;
  int64_t prefetch_steps = 4;
  int64_t prefetch_bytes = 64 << 20;  ///< decoded bytes ahead of the consumer; one step may always be ahead
  int64_t cache_bytes = 0;            ///< finished pictures kept for reuse
  int64_t max_tokens = 128;
  /// Mode pack: shared with whoever else encodes, until the loader is gone; null in mode bucket.
  std::shared_ptr<const text::DocumentEncoder> documents{};
  int64_t sequence_length = 0;  ///< mode pack
  FeatureColumns columns{};     ///< of models on latents
  int64_t classes = 0;          ///< of models on classes
  PictureOptions pictures{};
  /// Shared as of PartReader; null: files.
  std::shared_ptr<index::PartSource> source{};
  Nanoseconds read_deadline = std::chrono::seconds(60);
};

/// Counters since the start; a snapshot.
struct LoaderStats {
  int64_t items = 0;
  int64_t bytes_read = 0;
  int64_t bytes_planned = 0;  ///< payload of this rank's items: bytes_read never exceeds it
  int64_t cache_hits = 0;
  int64_t bad_items = 0;
  double wait_seconds = 0.0;  ///< that next() waited
};

/// Loads this rank's items several steps ahead on native threads: read -> verify checksum -> decode ->
/// cover/crop/flip -> slot. Work finishes in any order and is handed over in plan order; the output depends
/// on nothing but the plan. `next` is for one thread; amendments may be added between calls.
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
  [[nodiscard]] LoaderStats stats() const;
  /// Stops and joins; `next` refuses afterwards.
  void close();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace chiliad::loader
