#include "chiliad/python/rank_loader.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <limits>
#include <thread>

#include "chiliad/base/error.h"
#include "chiliad/base/log.h"
#include "chiliad/base/units.h"

namespace chiliad::python {
namespace {

constexpr int64_t kMinItemsForRate = 100;
constexpr int64_t kAlwaysHeld = 2;  // the one at work, and the one that is being taken
constexpr auto kCloseWithin = std::chrono::seconds(5);

int64_t end_of(const stepplan::Plan& plan, int64_t epochs) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 4;
  const int64_t steps = plan.steps_per_epoch();
  const int64_t asked = epochs == 0 || epochs > kMost / steps ? kMost : epochs * steps;
  return std::min(asked, plan.num_steps().value_or(kMost));
}

int64_t bytes_of(const loader::Batch& batch) {
  int64_t bytes = 0;
  for (const HostArray* array :
       {&batch.pixels, &batch.latents, &batch.text, &batch.pooled, &batch.tokens, &batch.targets})
    bytes += array->num_bytes();
  return bytes;
}

void add(const loader::LoaderStats& more, loader::LoaderStats& sum) {
  sum.items += more.items;
  sum.bytes_read += more.bytes_read;
  sum.bytes_planned += more.bytes_planned;
  sum.cache_hits += more.cache_hits;
  sum.bad_items += more.bad_items;
  sum.wait_seconds += more.wait_seconds;
}

/// Threads that hang in their storage must not hang the process.
void close_within_deadline(std::unique_ptr<loader::Loader> loader, std::shared_ptr<const OpenedRun> run) {
  std::promise<void> closed;
  auto is_closed = closed.get_future();
  std::thread closer(
      [loader = std::move(loader), run = std::move(run), closed = std::move(closed)]() mutable {
        loader.reset();
        run.reset();
        closed.set_value();
      });
  if (is_closed.wait_for(kCloseWithin) == std::future_status::ready) {
    closer.join();
    return;
  }
  log_warn("loader: a read does not come back from its storage; its threads are left alone");
  closer.detach();
}

/// The loaders there are, for close_all.
struct Registry {
  std::mutex mutex;  // guards loaders
  std::vector<std::weak_ptr<RankLoader>> loaders;
};

Registry& registry() {
  static auto* const kRegistry = new Registry;  // never destroyed: loaders may outlive statics
  return *kRegistry;
}

}  // namespace

HeldBatch::HeldBatch(loader::Batch batch, const Place& place,
                     std::vector<std::pair<int64_t, std::string>> bad, std::shared_ptr<HeldBatches> ledger)
    : batch_(std::move(batch)), place_(place), bad_(std::move(bad)), ledger_(std::move(ledger)) {
  for (const stepplan::Item& item : batch_.items) {
    weights_.push_back(item.weight);
    samples_.push_back(item.sample);
    draw_keys_.push_back(item.draw_key);
  }
  bytes_ = bytes_of(batch_);
  ledger_->bytes += bytes_;
  ++ledger_->count;
}

HeldBatch::~HeldBatch() {
  ledger_->bytes -= bytes_;
  --ledger_->count;
}

RankLoader::RankLoader(std::shared_ptr<const OpenedRun> run, RankLoaderOptions options)
    : run_(std::move(run)),
      options_(std::move(options)),
      end_step_(end_of(run_->plan(), options_.epochs)),
      process_(::getpid()),
      held_(std::make_shared<HeldBatches>()) {}

std::shared_ptr<RankLoader> RankLoader::make(std::shared_ptr<const OpenedRun> run,
                                             RankLoaderOptions options) {
  std::shared_ptr<RankLoader> loader(new RankLoader(std::move(run), std::move(options)));
  std::lock_guard lock(registry().mutex);
  auto& loaders = registry().loaders;
  std::erase_if(loaders, [](const auto& one) { return one.expired(); });
  loaders.push_back(loader);
  return loader;
}

void RankLoader::close_all() {
  std::vector<std::weak_ptr<RankLoader>> loaders;
  {
    std::lock_guard lock(registry().mutex);
    loaders.swap(registry().loaders);
  }
  for (const auto& one : loaders) {
    const auto loader = one.lock();
    if (loader != nullptr && loader->process_ == ::getpid()) loader->close();
  }
}

RankLoader::~RankLoader() {
  if (::getpid() != process_) {
    static_cast<void>(loader_.release());  // its threads are not here: nothing can be joined
    return;
  }
  stop();
}

void RankLoader::check_process() const {
  if (::getpid() == process_) return;
  throw InvalidInput(
      "chiliad.Loader",
      fmt::format("was made in process {} and used in process {}, a fork of it, where its threads "
                  "are not. Make it in the process that uses it; start worker processes with the "
                  "method spawn; in a DataLoader set num_workers=0",
                  process_, ::getpid()));
}

void RankLoader::start() {
  if (closed_) throw InvalidInput("chiliad.Loader", "is closed. Make a new one");
  if (loader_ != nullptr || next_step_ >= end_step_) return;
  loader_ = std::make_unique<loader::Loader>(run_->index(), run_->plan(), options_.journal, next_step_,
                                             end_step_, options_.loader);
}

void RankLoader::stop() {
  if (loader_ == nullptr) return;
  add(loader_->stats(), stopped_stats_);
  close_within_deadline(std::move(loader_), run_);
}

bool RankLoader::wait(Nanoseconds most) {
  check_process();
  std::lock_guard lock(mutex_);
  return has_step(most);
}

// After an error the next call starts anew, at the step that failed: storage may be back.
bool RankLoader::has_step(Nanoseconds most) {
  start();
  if (step_.has_value() || next_step_ >= end_step_) return true;
  try {
    if (!loader_->wait(most)) return false;
    step_ = loader_->next();
  } catch (...) {
    stop();
    throw;
  }
  CHILIAD_CHECK(!step_->slots.empty(), "step {} has no slots", step_->step);
  run_->reached(step_->step);
  ++next_step_;
  slot_ = 0;
  told_bad_ = false;
  return true;
}

int64_t RankLoader::locked_epoch() const {
  return step_.has_value() ? step_->epoch : next_step_ / run_->plan().steps_per_epoch();
}

int64_t RankLoader::locked_next_step() const {
  return step_.has_value() ? step_->step : next_step_;
}

bool RankLoader::is_over(int64_t epoch) const {
  check_process();
  std::lock_guard lock(mutex_);
  return locked_epoch() != epoch || (!step_.has_value() && next_step_ >= end_step_);
}

void RankLoader::check_held() const {
  if (held_->count < kAlwaysHeld || held_->bytes <= options_.held_bytes) return;
  throw InvalidInput(
      "chiliad.Loader",
      fmt::format("held_bytes: {} batches that are still referred to hold {}, expected at most {}. Let go of "
                  "batches that are done (`del`), copy what is kept (`batch[\"pixels\"].copy()`), or raise "
                  "held_bytes",
                  held_->count.load(), format_bytes(held_->bytes), format_bytes(options_.held_bytes)));
}

void RankLoader::check_bad(const std::vector<std::pair<int64_t, std::string>>& bad,
                           const loader::Batch& batch) {
  if (told_bad_) return;
  told_bad_ = true;
  items_seen_ += static_cast<int64_t>(batch.items.size());
  bad_seen_ += static_cast<int64_t>(bad.size());
  if (bad.empty()) return;
  const auto& [row, reason] = bad.back();
  const std::string& key = run_->index().key(batch.items[static_cast<size_t>(row)].sample);
  if (options_.stops_at_bad)
    throw CorruptData(key, fmt::format("{}. Set on_bad=\"mask\" to go on without it", bad.front().second));
  const double fraction = static_cast<double>(bad_seen_) / static_cast<double>(items_seen_);
  if (items_seen_ >= kMinItemsForRate && fraction > options_.max_bad_fraction) {
    throw CorruptData(
        key, fmt::format("{} of {} items could not be used, more than data.max_bad_fraction {} (last: "
                         "{}). Check the data with `chiliad data verify`",
                         bad_seen_, items_seen_, options_.max_bad_fraction, reason));
  }
}

std::shared_ptr<HeldBatch> RankLoader::take(int64_t epoch) {
  check_process();
  std::lock_guard lock(mutex_);
  if (locked_epoch() != epoch || !has_step(Nanoseconds(0)) || !step_.has_value()) return nullptr;
  check_held();
  loader::Batch& batch = step_->slots[slot_];
  std::vector<std::pair<int64_t, std::string>> bad;
  for (size_t i = 0; i < batch.items.size(); ++i) {
    const auto& verdicts = step_->verdicts;
    const auto found = std::find_if(verdicts.begin(), verdicts.end(), [&](const loader::Verdict& verdict) {
      return verdict.sample == batch.items[i].sample;
    });
    if (found != verdicts.end()) bad.emplace_back(static_cast<int64_t>(i), found->reason);
  }
  check_bad(bad, batch);
  const HeldBatch::Place place{step_->step,
                               step_->epoch,
                               static_cast<int64_t>(slot_),
                               static_cast<int64_t>(step_->slots.size()),
                               step_->num_items,
                               step_->num_tokens};
  auto held = std::make_shared<HeldBatch>(std::move(batch), place, std::move(bad), held_);
  told_bad_ = false;
  if (++slot_ == step_->slots.size()) step_.reset();
  return held;
}

int64_t RankLoader::epoch() const {
  check_process();
  std::lock_guard lock(mutex_);
  return locked_epoch();
}

int64_t RankLoader::next_step() const {
  check_process();
  std::lock_guard lock(mutex_);
  return locked_next_step();
}

void RankLoader::seek(int64_t step) {
  check_process();
  if (step < 0 || step > end_step_)
    throw InvalidInput("chiliad.Loader", fmt::format("step: expected 0 to {}, got {}", end_step_, step));
  std::lock_guard lock(mutex_);
  if (!step_.has_value() && next_step_ == step) return;
  stop();
  step_.reset();
  next_step_ = step;
}

stepplan::Cursor RankLoader::cursor() const {
  return run_->plan().cursor(next_step(), options_.journal);
}

void RankLoader::resume(const stepplan::Cursor& cursor) {
  check_process();
  run_->plan().check_resumable(cursor);
  const Digest journal = options_.journal.digest();
  if (cursor.journal != journal) {
    throw InvalidInput("resume",
                       fmt::format("journal: was {}, is {}. Give the journal that the state was made with",
                                   cursor.journal.hex(), journal.hex()));
  }
  seek(cursor.next_step);
}

loader::LoaderStats RankLoader::stats() const {
  check_process();
  std::lock_guard lock(mutex_);
  loader::LoaderStats sum = stopped_stats_;
  if (loader_ != nullptr) add(loader_->stats(), sum);
  return sum;
}

void RankLoader::close() {
  check_process();
  std::lock_guard lock(mutex_);
  closed_ = true;
  stop();
  step_.reset();
}

}  // namespace chiliad::python
