#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "chiliad/base/clock.h"
#include "chiliad/loader/item_loader.h"
#include "chiliad/loader/item_watch.h"
#include "chiliad/loader/slab.h"
#include "chiliad/stepplan/pack.h"
#include "chiliad/text/document_encoder.h"

namespace chiliad::loader {

/// What a loader does, for whoever wants to be there.
enum class LoaderEvent { kPlanned, kAdmitted, kItemBegun, kItemDone, kHandedOver };

struct LoaderOptions {
  int rank = 0;
  stepplan::PackOptions pack{};
  int num_threads = 2;
  int64_t prefetch_steps = 4;
  int64_t prefetch_bytes = 64 << 20;  ///< decoded bytes ahead of the consumer; one step may always be ahead
  bool tune = false;                  ///< threads and steps ahead start there and follow the consumer's wait
  int max_threads = 0;                ///< that tuning may use; 0: the processors of the calling thread
  int64_t max_prefetch_steps = 64;    ///< the same of steps ahead
  int64_t cache_bytes = 0;            ///< finished pictures kept for reuse
  int64_t max_tokens = 128;
  /// Mode pack: shared with whoever else encodes, until the loader is gone; null in mode bucket.
  std::shared_ptr<const text::DocumentEncoder> documents{};
  int64_t sequence_length = 0;  ///< mode pack
  /// Mode pack of conversations, in place of `documents`; shared the same way.
  std::shared_ptr<const Conversations> conversations{};
  FeatureColumns columns{};  ///< of models on latents
  int64_t classes = 0;       ///< of models on classes
  PictureOptions pictures{};
  /// Shared as of PartReader; null: files.
  std::shared_ptr<index::PartSource> source{};
  Nanoseconds read_deadline = std::chrono::seconds(60);
  Nanoseconds item_deadline = std::chrono::seconds(10);  ///< an item that takes longer is told of
  bool skip_unavailable = false;                         ///< storage that fails for good makes a bad item
  SlabAllocator allocator = page_allocator();
  std::function<void(const std::string&)> on_slow_item{};  ///< default: a warning in the log
  std::function<void(LoaderEvent)> on_event{};             ///< for tests; from any thread, without locks
};

/// Counters since the start; a snapshot.
struct LoaderStats {
  int64_t items = 0;
  int64_t bytes_read = 0;
  int64_t bytes_planned = 0;  ///< payload of this rank's items: bytes_read never exceeds it
  int64_t cache_hits = 0;
  int64_t bad_items = 0;
  double wait_seconds = 0.0;                           ///< that next() waited
  std::array<double, kNumItemPhases> phase_seconds{};  ///< of all threads; idle ones count nothing
  double plan_seconds = 0.0;                           ///< that planning took
  double blocked_seconds = 0.0;                        ///< that planning waited for the memory budget
  int threads = 0;                                     ///< at work now
  int64_t prefetch_steps = 0;                          ///< as tuned
  int64_t tuner_changes = 0;
  int64_t slow_items = 0;
  Slab::Stats slab{};
};

}  // namespace chiliad::loader
