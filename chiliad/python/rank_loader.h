#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chiliad/base/clock.h"
#include "chiliad/loader/loader.h"
#include "chiliad/python/opened_run.h"
#include "chiliad/stepplan/journal.h"

namespace chiliad::python {

/// Bytes and number of the batches that a consumer still refers to.
struct HeldBatches {
  std::atomic<int64_t> bytes{0};
  std::atomic<int64_t> count{0};
};

/// A micro-batch in the hands of Python: arrays of it stay valid as long as it lives.
class HeldBatch {
 public:
  /// What is said of the step and of the place in it.
  struct Place {
    int64_t step = 0;
    int64_t epoch = 0;
    int64_t slot = 0;
    int64_t num_slots = 0;
    int64_t num_items = 0;   ///< of the step, over all ranks, as planned
    int64_t num_tokens = 0;  ///< the same of their tokens
  };
  /// ledger: shared with the loader, which may go first.
  HeldBatch(loader::Batch batch, const Place& place, std::vector<std::pair<int64_t, std::string>> bad,
            std::shared_ptr<HeldBatches> ledger);
  ~HeldBatch();
  HeldBatch(const HeldBatch&) = delete;
  HeldBatch& operator=(const HeldBatch&) = delete;

  [[nodiscard]] loader::Batch& batch() { return batch_; }
  [[nodiscard]] const Place& place() const { return place_; }
  /// Row and reason of the items that could not be used.
  [[nodiscard]] const std::vector<std::pair<int64_t, std::string>>& bad() const { return bad_; }
  // [B] or [D]
  [[nodiscard]] std::vector<float>& weights() { return weights_; }
  [[nodiscard]] std::vector<int64_t>& samples() { return samples_; }
  [[nodiscard]] std::vector<uint64_t>& draw_keys() { return draw_keys_; }

 private:
  loader::Batch batch_;
  Place place_;
  std::vector<std::pair<int64_t, std::string>> bad_;
  std::vector<float> weights_;
  std::vector<int64_t> samples_;
  std::vector<uint64_t> draw_keys_;
  std::shared_ptr<HeldBatches> ledger_;
  int64_t bytes_ = 0;
};

struct RankLoaderOptions {
  loader::LoaderOptions loader{};
  stepplan::Journal journal{};
  int64_t epochs = 0;                ///< 0: without end
  int64_t held_bytes = 512LL << 20;  ///< that a consumer may refer to; two batches always
  bool stops_at_bad = false;         ///< a bad item is an error in place of weight 0
  double max_bad_fraction = 1.0;     ///< of this rank's items, once 100 were seen
};

/// One rank's micro-batches in plan order, one epoch after another. Threads start with the first wait. Calls
/// of several threads wait for each other. A forked process has no threads and is refused (InvalidInput).
class RankLoader {
 public:
  [[nodiscard]] static std::shared_ptr<RankLoader> make(std::shared_ptr<const OpenedRun> run,
                                                        RankLoaderOptions options);
  /// As `close`; in a forked process it leaves everything as it is.
  ~RankLoader();
  RankLoader(const RankLoader&) = delete;
  RankLoader& operator=(const RankLoader&) = delete;

  /// Waits at most so long; whether `take` has an answer. Throws as loader::Loader::wait.
  [[nodiscard]] bool wait(Nanoseconds most);
  /// The next micro-batch if it belongs to `epoch`; nothing where that epoch, or the last one, is over, or a
  /// wait is needed. Throws InvalidInput where the consumer refers to more than held_bytes; CorruptData for
  /// items that cannot be used, where the options say so.
  [[nodiscard]] std::shared_ptr<HeldBatch> take(int64_t epoch);
  /// Whether `take(epoch)` has nothing more to give.
  [[nodiscard]] bool is_over(int64_t epoch) const;

  /// Epoch of the micro-batch that comes next.
  [[nodiscard]] int64_t epoch() const;
  /// The first step that was not handed over whole.
  [[nodiscard]] int64_t next_step() const;
  /// Goes to the begin of a step.
  void seek(int64_t step);
  [[nodiscard]] stepplan::Cursor cursor() const;
  /// Seeks to the cursor. Throws InvalidInput naming what differs.
  void resume(const stepplan::Cursor& cursor);

  /// Of all threads that were started.
  [[nodiscard]] loader::LoaderStats stats() const;
  [[nodiscard]] const HeldBatches& held() const { return *held_; }
  [[nodiscard]] const OpenedRun& run() const { return *run_; }
  [[nodiscard]] int num_ranks() const { return options_.loader.pack.num_ranks; }
  /// Stops the threads. One that does not come back from its storage is left alone after some seconds.
  void close();
  /// Closes all there are: at the end of the process, when nobody can say who lets go of them.
  static void close_all();

 private:
  RankLoader(std::shared_ptr<const OpenedRun> run, RankLoaderOptions options);
  void check_process() const;
  void start();
  void stop();
  bool has_step(Nanoseconds most);
  void check_held() const;
  void check_bad(const std::vector<std::pair<int64_t, std::string>>& bad, const loader::Batch& batch);
  [[nodiscard]] int64_t locked_epoch() const;
  [[nodiscard]] int64_t locked_next_step() const;

  const std::shared_ptr<const OpenedRun> run_;
  const RankLoaderOptions options_;
  const int64_t end_step_;
  const pid_t process_;
  const std::shared_ptr<HeldBatches> held_;  // shared with the batches, until the last is gone

  mutable std::mutex mutex_;  // guards the rest
  std::unique_ptr<loader::Loader> loader_;
  std::optional<loader::RankStep> step_;  // with slots left
  size_t slot_ = 0;                       // of step_, the next
  bool told_bad_ = false;                 // of that slot
  int64_t next_step_ = 0;                 // behind step_
  int64_t items_seen_ = 0;
  int64_t bad_seen_ = 0;
  loader::LoaderStats stopped_stats_;
  bool closed_ = false;
};

}  // namespace chiliad::python
