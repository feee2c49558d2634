// 1. One thread plans: select, pack, room for this rank's slots, one task an item; it waits while enough is
// ahead.
// 2. A crew of threads loads items into their places, in any order, costly ones early.
// 3. `next` hands over the oldest step once all its items are there, applies amendments that came meanwhile,
// and lets the tuner look at how long it waited.
#include "chiliad/loader/loader.h"

#include <fmt/core.h>
#include <sched.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/log.h"
#include "chiliad/base/planted.h"
#include "chiliad/loader/item_cost.h"
#include "chiliad/loader/item_crew.h"
#include "chiliad/loader/item_loader.h"
#include "chiliad/loader/make_slot.h"
#include "chiliad/loader/slow_items.h"
#include "chiliad/loader/step_maker.h"
#include "chiliad/loader/tuner.h"

namespace chiliad::loader {
namespace {

constexpr int kMostThreadsUnasked = 16;
constexpr double kFirstOfAll = -1e12;

using JournalPtr = std::shared_ptr<const stepplan::Journal>;

struct PendingStep {
  RankStep out;
  int64_t bytes = 0;         // of the memory budget
  size_t remaining = 0;      // items not finished
  JournalPtr journal;        // that it was planned with
  std::exception_ptr error;  // the first of its items
};

int usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

int most_threads(const LoaderOptions& options) {
  if (!options.tune) return options.num_threads;
  const int most =
      options.max_threads > 0 ? options.max_threads : std::min(usable_processors(), kMostThreadsUnasked);
  return std::max(most, options.num_threads);
}

void check_options(const LoaderOptions& options) {
  CHILIAD_CHECK(0 <= options.rank && options.rank < options.pack.num_ranks, "rank {} of {}", options.rank,
                options.pack.num_ranks);
  CHILIAD_CHECK_GT(options.num_threads, 0);
  CHILIAD_CHECK_GT(options.prefetch_steps, 0);
}

}  // namespace

class Loader::Impl {
 public:
  Impl(const index::Index& index, const stepplan::Plan& plan, stepplan::Journal journal, int64_t first_step,
       int64_t end_step, LoaderOptions options)
      : plan_(plan),
        options_(std::move(options)),
        first_step_(first_step),
        end_step_(end_step),
        items_(index, {options_.cache_bytes, options_.max_tokens, options_.pictures, options_.documents,
                       options_.sequence_length, options_.columns, options_.classes, options_.source,
                       options_.conversations}),
        steps_(index, plan, options_, items_),
        slab_(options_.prefetch_bytes, options_.allocator),
        watches_(static_cast<size_t>(most_threads(options_))),
        next_step_(first_step),
        journal_(std::make_shared<const stepplan::Journal>(std::move(journal))),
        tuner_(
            {most_threads(options_), options_.tune ? options_.max_prefetch_steps : options_.prefetch_steps},
            {options_.num_threads, options_.prefetch_steps}),
        depth_(options_.prefetch_steps),
        crew_(most_threads(options_), options_.num_threads, "load"),
        slow_items_(watches_, index, options_.item_deadline, options_.on_slow_item),
        planner_([this] { plan_steps(); }) {}

  ~Impl() {
    try {
      close();
    } catch (const std::exception& error) {
      log_error("loader: {}", error.what());
    }
  }

  RankStep next();
  bool wait(Nanoseconds most);
  void amend(const std::vector<stepplan::Amendment>& amendments);
  uint64_t digest_again(const Batch& batch, size_t item);
  LoaderStats stats() const;
  void close();

 private:
  void plan_steps();
  bool plan_step(int64_t step);
  bool await_memory(int64_t bytes);
  std::vector<ItemCrew::Task> make_tasks(PendingStep& step);
  void load_item(PendingStep& step, size_t slot, size_t i, int thread);
  std::string load_or_recall(const PendingStep& step, Batch& batch, size_t i, ItemWatch& watch);
  bool is_front_ready() const;
  [[noreturn]] void refuse_late() const;
  void wait_for_front(std::unique_lock<std::mutex>& lock);
  std::unique_ptr<PendingStep> take_front();
  void tune();
  Nanoseconds busy_time() const;
  void tell(LoaderEvent event) const {
    if (options_.on_event) options_.on_event(event);
  }

  const stepplan::Plan& plan_;
  const LoaderOptions options_;
  const int64_t first_step_;
  const int64_t end_step_;
  const SystemClock clock_;
  ItemLoader items_;
  const StepMaker steps_;
  Slab slab_;
  std::deque<ItemWatch> watches_;  // of each thread of the crew

  mutable std::mutex mutex_;  // guards what follows up to crew_
  std::condition_variable changed_;
  std::deque<std::unique_ptr<PendingStep>>
      pending_;  // in plan order; tasks hold pointers until `remaining` is 0
  int64_t next_step_;
  int64_t bytes_ahead_ = 0;
  int64_t progress_ = 0;        // grows with everything that gets done
  int64_t seen_progress_ = -1;  // of `wait`: when it saw progress last, and which
  Nanoseconds seen_at_{0};
  bool stopping_ = false;
  std::exception_ptr planner_error_;
  // Replaced as a whole by `amend`; shared with the steps that were planned with it until they are handed
  // over.
  JournalPtr journal_;
  LoaderStats stats_;
  Nanoseconds blocked_{0};
  Tuner tuner_;
  int64_t depth_;
  double cost_ahead_ = 0.0;  // mean predicted seconds of a step's decodes

  ItemCrew crew_;
  SlowItems slow_items_;
  std::thread planner_;
};

void Loader::Impl::plan_steps() {
  try {
    for (int64_t step = first_step_; step < end_step_; ++step) {
      if (!plan_step(step)) return;
    }
  } catch (...) {
    std::lock_guard lock(mutex_);
    planner_error_ = std::current_exception();
    changed_.notify_all();
  }
}

// Returns false if the loader is stopping.
bool Loader::Impl::plan_step(int64_t step) {
  JournalPtr journal;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopping_ || static_cast<int64_t>(pending_.size()) < depth_; });
    if (stopping_) return false;
    journal = journal_;
  }
  const Nanoseconds start = clock_.now();
  StepDraft draft = steps_.draft(step, *journal);
  const Nanoseconds took = clock_.now() - start;
  tell(LoaderEvent::kPlanned);
  if (!await_memory(draft.bytes)) return false;
  const int64_t planned_bytes = draft.planned_bytes;
  auto made = std::make_unique<PendingStep>();
  made->bytes = draft.bytes;
  made->remaining = draft.num_items;
  made->journal = std::move(journal);
  made->out = steps_.make(std::move(draft), slab_);
  auto tasks = make_tasks(*made);
  {
    std::lock_guard lock(mutex_);
    stats_.bytes_planned += planned_bytes;
    stats_.plan_seconds += to_seconds(took);
    pending_.push_back(std::move(made));
    ++progress_;
    changed_.notify_all();
  }
  // From here on the step lives only as long as it has unfinished items.
  crew_.add(std::move(tasks));
  tell(LoaderEvent::kAdmitted);
  return true;
}

/// Returns false if the loader is stopping.
bool Loader::Impl::await_memory(int64_t bytes) {
  std::unique_lock lock(mutex_);
  const Nanoseconds start = clock_.now();
  changed_.wait(
      lock, [&] { return stopping_ || pending_.empty() || bytes_ahead_ + bytes <= options_.prefetch_bytes; });
  blocked_ += clock_.now() - start;
  if (stopping_) return false;
  bytes_ahead_ += bytes;
  return true;
}

std::vector<ItemCrew::Task> Loader::Impl::make_tasks(PendingStep& step) {
  const bool is_first = step.out.step == first_step_;  // nothing may come before it
  std::vector<ItemCrew::Task> tasks;
  double cost_sum = 0.0;
  for (size_t slot = 0; slot < step.out.slots.size(); ++slot) {
    const auto& items = step.out.slots[slot].items;
    for (size_t i = 0; i < items.size(); ++i) {
      const double cost = items_.cost_seconds(items[i]);
      cost_sum += cost;
      tasks.push_back({cost, [this, &step, slot, i](int thread) { load_item(step, slot, i, thread); }});
    }
  }
  cost_ahead_ = is_first ? cost_sum : 0.9 * cost_ahead_ + 0.1 * cost_sum;
  const double step_seconds = cost_ahead_ / crew_.num_active();
  for (auto& task : tasks) {
    task.key =
        (is_first ? kFirstOfAll : 0.0) + start_key(step.out.step - first_step_, step_seconds, task.key);
  }
  return tasks;
}

/// What was found in this step before is found again, even if the file was mended since: a replay gives the
/// same.
std::string Loader::Impl::load_or_recall(const PendingStep& step, Batch& batch, size_t i, ItemWatch& watch) {
  const stepplan::Item& item = batch.items[i];
  const ItemPlace place = place_of(batch, i);
  const auto* known = step.journal->found_in(item.sample, step.out.step);
  if (known != nullptr && !planted_bug("findings_forgotten")) {
    clear_item(place);
    return known->reason;
  }
  try {
    return items_.load(item, batch.shape_of(i), place, &watch);
  } catch (const Unavailable& error) {
    if (!options_.skip_unavailable) throw;
    clear_item(place);
    return fmt::format("{}: storage: {}", plan_.index().key(item.sample), error.what());
  }
}

void Loader::Impl::load_item(PendingStep& step, size_t slot, size_t i, int thread) {
  tell(LoaderEvent::kItemBegun);
  Batch& batch = step.out.slots[slot];
  ItemWatch& watch = watches_[static_cast<size_t>(thread)];
  watch.begin(batch.items[i].sample);
  std::string refusal;
  std::exception_ptr error;
  try {
    refusal = load_or_recall(step, batch, i, watch);
    batch.content[i] = content_digest(place_of(batch, i));
  } catch (...) {
    error = std::current_exception();
  }
  watch.end();
  tell(LoaderEvent::kItemDone);
  std::lock_guard lock(mutex_);
  ++progress_;
  ++stats_.items;
  if (!refusal.empty()) {
    ++stats_.bad_items;
    batch.items[i].weight = 0.0F;
    step.out.verdicts.push_back({batch.items[i].sample, std::move(refusal)});
  }
  if (step.error == nullptr) step.error = error;
  --step.remaining;
  if (step.remaining == 0 || error != nullptr) changed_.notify_all();
}

bool Loader::Impl::is_front_ready() const {
  if (stopping_ || planner_error_ != nullptr) return true;
  return !pending_.empty() && (pending_.front()->remaining == 0 || pending_.front()->error != nullptr);
}

void Loader::Impl::refuse_late() const {
  throw Unavailable(
      fmt::format("loader: step {}", next_step_),
      fmt::format("storage did not answer within {:.1f} s. Check the data set's disk or network",
                  to_seconds(options_.read_deadline)));
}

// A step is late only if nothing at all got done for the whole deadline.
void Loader::Impl::wait_for_front(std::unique_lock<std::mutex>& lock) {
  int64_t seen = progress_;
  while (!changed_.wait_for(lock, options_.read_deadline, [&] { return is_front_ready(); })) {
    if (progress_ == seen) refuse_late();
    seen = progress_;
  }
}

bool Loader::Impl::wait(Nanoseconds most) {
  const Nanoseconds start = clock_.now();
  std::unique_lock lock(mutex_);
  if (seen_progress_ != progress_) {
    seen_progress_ = progress_;
    seen_at_ = start;
  }
  const bool ready = changed_.wait_for(lock, most, [&] { return is_front_ready(); });
  const Nanoseconds now = clock_.now();
  stats_.wait_seconds += to_seconds(now - start);
  if (ready) {
    seen_progress_ = -1;
  } else if (progress_ == seen_progress_ && now - seen_at_ >= options_.read_deadline) {
    refuse_late();
  }
  return ready;
}

std::unique_ptr<PendingStep> Loader::Impl::take_front() {
  const Nanoseconds start = clock_.now();
  std::unique_lock lock(mutex_);
  CHILIAD_CHECK(!stopping_, "next after close");
  CHILIAD_CHECK(next_step_ < end_step_, "next past the end: step {}", next_step_);
  wait_for_front(lock);
  CHILIAD_CHECK(!stopping_, "closed while next waited");
  const bool has_front = !pending_.empty();
  if (has_front && pending_.front()->error != nullptr) std::rethrow_exception(pending_.front()->error);
  if (!has_front || pending_.front()->remaining != 0) std::rethrow_exception(planner_error_);
  auto done = std::move(pending_.front());
  pending_.pop_front();
  bytes_ahead_ -= done->bytes;
  ++next_step_;
  stats_.wait_seconds += to_seconds(clock_.now() - start);
  changed_.notify_all();
  return done;
}

RankStep Loader::Impl::next() {
  auto done = take_front();
  JournalPtr journal;
  {
    std::lock_guard lock(mutex_);
    journal = journal_;
  }
  auto& verdicts = done->out.verdicts;
  std::sort(verdicts.begin(), verdicts.end(),
            [](const Verdict& a, const Verdict& b) { return a.sample < b.sample; });
  if (journal != done->journal) steps_.apply(*journal, done->out);
  done->out.consumed = consumed_digest(done->out);
  if (options_.tune) tune();
  tell(LoaderEvent::kHandedOver);
  return std::move(done->out);
}

Nanoseconds Loader::Impl::busy_time() const {
  Nanoseconds busy{0};
  for (const ItemWatch& watch : watches_) {
    for (const Nanoseconds spent : watch.snapshot().spent) busy += spent;
  }
  return busy;
}

void Loader::Impl::tune() {
  const Nanoseconds busy = busy_time();
  int threads = 0;
  {
    std::lock_guard lock(mutex_);
    const auto waited =
        std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(stats_.wait_seconds));
    if (!tuner_.add_step({clock_.now(), waited, busy, blocked_})) return;
    depth_ = tuner_.settings().depth;
    threads = tuner_.settings().threads;
    changed_.notify_all();
  }
  crew_.set_active(threads);
}

void Loader::Impl::amend(const std::vector<stepplan::Amendment>& amendments) {
  std::lock_guard lock(mutex_);
  auto journal = std::make_shared<stepplan::Journal>(*journal_);
  for (const auto& amendment : amendments) journal->add(amendment);
  journal_ = std::move(journal);
}

uint64_t Loader::Impl::digest_again(const Batch& batch, size_t item) {
  ItemCopy copy(batch, item);
  static_cast<void>(items_.load(batch.items[item], batch.shape_of(item), copy.place()));
  return content_digest(copy.place());
}

LoaderStats Loader::Impl::stats() const {
  std::unique_lock lock(mutex_);
  LoaderStats stats = stats_;
  stats.blocked_seconds = to_seconds(blocked_);
  stats.prefetch_steps = depth_;
  stats.tuner_changes = tuner_.num_changes();
  lock.unlock();
  stats.bytes_read = items_.bytes_read();
  stats.cache_hits = items_.cache_hits();
  stats.threads = crew_.num_active();
  stats.slow_items = slow_items_.count();
  stats.slab = slab_.stats();
  for (const ItemWatch& watch : watches_) {
    const auto spent = watch.snapshot().spent;
    for (size_t phase = 0; phase < spent.size(); ++phase)
      stats.phase_seconds[phase] += to_seconds(spent[phase]);
  }
  return stats;
}

void Loader::Impl::close() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (planner_.joinable()) planner_.join();
  crew_.close();
  slow_items_.close();
}

Loader::Loader(const index::Index& index, const stepplan::Plan& plan, stepplan::Journal journal,
               int64_t first_step, int64_t end_step, LoaderOptions options) {
  check_options(options);
  const bool encodes = options.documents != nullptr || options.conversations != nullptr;
  CHILIAD_CHECK(
      plan.packs_documents() == encodes && plan.packs_documents() == (options.pack.row_work != nullptr),
      "plan, encoder and packing of different modes");
  impl_ = std::make_unique<Impl>(index, plan, std::move(journal), first_step, end_step, std::move(options));
}

Loader::~Loader() = default;

RankStep Loader::next() {
  return impl_->next();
}
bool Loader::wait(Nanoseconds most) {
  return impl_->wait(most);
}
void Loader::amend(const std::vector<stepplan::Amendment>& amendments) {
  impl_->amend(amendments);
}
uint64_t Loader::digest_again(const Batch& batch, size_t item) {
  return impl_->digest_again(batch, item);
}
LoaderStats Loader::stats() const {
  return impl_->stats();
}
void Loader::close() {
  impl_->close();
}

}  // namespace chiliad::loader
