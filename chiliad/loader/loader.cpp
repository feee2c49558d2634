// 1. One thread plans: select, pack, room for this rank's slots, one task an item; it waits while enough is
// ahead.
// 2. Pool threads load items into their places, in any order.
// 3. `next` hands over the oldest step once all its items are there, and applies amendments that came
// meanwhile.
#include "chiliad/loader/loader.h"

#include <fmt/core.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/log.h"
#include "chiliad/base/thread_pool.h"
#include "chiliad/loader/item_loader.h"

namespace chiliad::loader {
namespace {

constexpr size_t kQueuedItems = 256;

struct PendingStep {
  RankStep out;
  int64_t bytes = 0;
  size_t remaining = 0;       // items not finished
  size_t num_amendments = 0;  // of the journal that it was planned with
  std::exception_ptr error;   // the first of its items
};

ItemPlace place_in_pack(Batch& batch, size_t i) {
  const auto rows = [i](HostArray& array, const std::vector<int64_t>& begins) {
    const size_t row = begins.back() == 0 ? 0 : array.bytes().size() / static_cast<size_t>(begins.back());
    return array.bytes().subspan(static_cast<size_t>(begins[i]) * row,
                                 static_cast<size_t>(begins[i + 1] - begins[i]) * row);
  };
  const auto tokens = batch.tokens.as<int32_t>();
  const size_t length = tokens.size() / batch.items.size();
  const size_t pooled = batch.pooled.bytes().size() / batch.items.size();
  return {.pixels = {},
          .tokens = tokens.subspan(i * length, length),
          .token_count = &batch.token_counts[i],
          .latents = rows(batch.latents, batch.cu_latents),
          .text = rows(batch.text, batch.cu_text),
          .pooled = batch.pooled.bytes().subspan(i * pooled, pooled)};
}

ItemPlace place_of(Batch& batch, size_t i) {
  if (batch.is_row()) {
    const auto first = static_cast<size_t>(batch.cu_seqlens[i]);
    const auto count = static_cast<size_t>(batch.cu_seqlens[i + 1]) - first;
    return {{},
            batch.tokens.as<int32_t>().subspan(first, count),
            &batch.token_counts[i],
            batch.targets.as<int32_t>().subspan(first, count)};
  }
  if (batch.packs_pictures()) return place_in_pack(batch, i);
  const auto own = [&](HostArray& array) {
    const size_t bytes = array.bytes().size() / batch.items.size();
    return array.bytes().subspan(i * bytes, bytes);
  };
  const auto tokens = batch.tokens.as<int32_t>();
  const size_t length = tokens.size() / batch.items.size();
  return {own(batch.pixels),      tokens.subspan(i * length, length),
          &batch.token_counts[i], {},
          own(batch.latents),     own(batch.text),
          own(batch.pooled)};
}

int64_t longest_caption(const std::vector<stepplan::Item>& items) {
  int64_t longest = 0;
  for (const stepplan::Item& item : items) longest = std::max<int64_t>(longest, item.num_tokens);
  return longest;
}

/// Room for `count` features of a column, each of `shape`.
HostArray feature_room(const features::FeatureShape& feature, int64_t count) {
  std::vector<int64_t> sizes{count};
  for (int axis = 0; axis < feature.shape.rank(); ++axis) sizes.push_back(feature.shape[axis]);
  return HostArray(feature.dtype, Shape(sizes));
}

void add_features(const FeatureColumns& columns, Batch& batch) {
  const auto count = static_cast<int64_t>(batch.items.size());
  batch.latents = feature_room(columns.latents->latents_of(batch.bucket.width, batch.bucket.height), count);
  if (columns.text == nullptr) return;
  batch.text = feature_room(columns.text->text_of(longest_caption(batch.items)), count);
  if (const auto pooled = columns.text->pooled()) batch.pooled = feature_room(*pooled, count);
}

/// Pictures of any shapes one after another.
Batch make_picture_pack(stepplan::MicroBatch&& slot, const std::vector<stepplan::Bucket>& buckets,
                        const LoaderOptions& options) {
  const FeatureColumns& columns = options.columns;
  const auto count = static_cast<int64_t>(slot.items.size());
  Batch batch;
  batch.cu_latents.push_back(0);
  batch.cu_text.push_back(0);
  for (const stepplan::Item& item : slot.items) {
    const stepplan::Bucket bucket = buckets[static_cast<size_t>(item.bucket)];
    batch.shapes.push_back(bucket);
    batch.cu_latents.push_back(batch.cu_latents.back() +
                               columns.latents->latents_of(bucket.width, bucket.height).shape.count());
    batch.cu_text.push_back(batch.cu_text.back() + item.num_tokens);
  }
  batch.token_counts.assign(slot.items.size(), 0);
  batch.items = std::move(slot.items);
  batch.latents = HostArray(columns.latents->summary().dtype, Shape{batch.cu_latents.back()});
  batch.tokens = HostArray(DType::kI32, Shape{count, columns.text == nullptr ? 1 : 0});
  if (columns.text == nullptr) return batch;
  const auto feature = columns.text->text_of(batch.cu_text.back());
  batch.text = HostArray(feature.dtype, feature.shape);
  if (const auto pooled = columns.text->pooled()) batch.pooled = feature_room(*pooled, count);
  return batch;
}

Batch make_batch(stepplan::MicroBatch&& slot, stepplan::Bucket bucket, const LoaderOptions& options) {
  Batch batch;
  batch.bucket = bucket;
  const auto count = static_cast<int64_t>(slot.items.size());
  batch.token_counts.assign(slot.items.size(), 0);
  const int64_t longest = longest_caption(slot.items);
  batch.items = std::move(slot.items);
  if (options.columns.latents != nullptr) {
    add_features(options.columns, batch);
    batch.tokens = HostArray(DType::kI32, Shape{count, options.columns.text == nullptr ? 1 : 0});
    return batch;
  }
  batch.pixels = HostArray(DType::kU8, Shape{count, bucket.height, bucket.width, 3});
  batch.tokens = HostArray(DType::kI32, Shape{count, longest});
  return batch;
}

int64_t pack_bytes(const stepplan::MicroBatch& slot, const std::vector<stepplan::Bucket>& buckets,
                   const FeatureColumns& columns) {
  int64_t bytes = columns.text == nullptr ? 0 : columns.text->text_of(slot.num_tokens()).num_bytes();
  for (const stepplan::Item& item : slot.items) {
    const stepplan::Bucket bucket = buckets[static_cast<size_t>(item.bucket)];
    bytes += columns.latents->latents_of(bucket.width, bucket.height).num_bytes();
  }
  return bytes;
}

int64_t slot_bytes(const stepplan::MicroBatch& slot, const std::vector<stepplan::Bucket>& buckets,
                   const LoaderOptions& options) {
  if (options.documents != nullptr) return 8 * slot.num_tokens();
  const auto count = static_cast<int64_t>(slot.items.size());
  const auto& columns = options.columns;
  if (options.pack.packs_pictures()) return pack_bytes(slot, buckets, columns);
  const stepplan::Bucket bucket = buckets[static_cast<size_t>(slot.bucket)];
  if (columns.latents == nullptr)
    return count * (int64_t{3} * bucket.width * bucket.height + 4 * longest_caption(slot.items));
  int64_t bytes = columns.latents->latents_of(bucket.width, bucket.height).num_bytes();
  if (columns.text != nullptr) bytes += columns.text->text_of(longest_caption(slot.items)).num_bytes();
  return count * bytes;
}

Batch make_row(stepplan::MicroBatch&& slot) {
  Batch batch;
  batch.cu_seqlens.push_back(0);
  for (const stepplan::Item& item : slot.items)
    batch.cu_seqlens.push_back(batch.cu_seqlens.back() + static_cast<int32_t>(item.num_tokens));
  batch.tokens = HostArray(DType::kI32, Shape{slot.num_tokens()});
  batch.targets = HostArray(DType::kI32, Shape{slot.num_tokens()});
  batch.token_counts.assign(slot.items.size(), 0);
  batch.items = std::move(slot.items);
  return batch;
}

Batch make_slot(stepplan::MicroBatch&& slot, const std::vector<stepplan::Bucket>& buckets,
                const LoaderOptions& options) {
  if (options.documents != nullptr) return make_row(std::move(slot));
  if (options.pack.packs_pictures()) return make_picture_pack(std::move(slot), buckets, options);
  const stepplan::Bucket bucket = buckets[static_cast<size_t>(slot.bucket)];
  return make_batch(std::move(slot), bucket, options);
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
        end_step_(end_step),
        items_(index, {options_.cache_bytes, options_.max_tokens, options_.pictures, options_.documents,
                       options_.sequence_length, options_.columns, options_.classes, options_.source}),
        next_step_(first_step),
        journal_(std::make_shared<const stepplan::Journal>(std::move(journal))),
        pool_(options_.num_threads, kQueuedItems, "load"),
        planner_([this, first_step] { plan_steps(first_step); }) {}

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
  LoaderStats stats() const;
  void close();

 private:
  void plan_steps(int64_t first_step);
  bool plan_step(int64_t step);
  void load_item(PendingStep& step, size_t slot, size_t i);
  bool is_front_ready() const;
  [[noreturn]] void refuse_late() const;
  void wait_for_front(std::unique_lock<std::mutex>& lock);
  void apply_journal(RankStep& step, const stepplan::Journal& journal) const;

  const stepplan::Plan& plan_;
  const LoaderOptions options_;
  const int64_t end_step_;
  const SystemClock clock_;
  ItemLoader items_;

  mutable std::mutex mutex_;  // guards what follows up to pool_
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
  // Replaced as a whole by `amend`; the planner shares the one it started a step with until that step is
  // planned.
  std::shared_ptr<const stepplan::Journal> journal_;
  LoaderStats stats_;

  ThreadPool pool_;
  std::thread planner_;
};

void Loader::Impl::plan_steps(int64_t first_step) {
  try {
    for (int64_t step = first_step; step < end_step_; ++step) {
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
  std::shared_ptr<const stepplan::Journal> journal;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(
        lock, [&] { return stopping_ || static_cast<int64_t>(pending_.size()) < options_.prefetch_steps; });
    if (stopping_) return false;
    journal = journal_;
  }
  const stepplan::Step selected = plan_.select(step, *journal);
  stepplan::PackedStep packed = stepplan::pack(selected, plan_.buckets(), options_.pack);
  const auto rank = static_cast<size_t>(options_.rank);
  auto made = std::make_unique<PendingStep>();
  int64_t planned = 0;
  for (const auto& slot : packed.slots[rank]) {
    made->bytes += slot_bytes(slot, plan_.buckets(), options_);
    made->remaining += slot.items.size();
    for (const auto& item : slot.items) planned += items_.payload_bytes(item);
  }
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      return stopping_ || pending_.empty() || bytes_ahead_ + made->bytes <= options_.prefetch_bytes;
    });
    if (stopping_) return false;
    bytes_ahead_ += made->bytes;
  }
  made->num_amendments = journal->amendments().size();
  made->out.step = step;
  made->out.epoch = selected.epoch;
  made->out.num_items = packed.num_items;
  made->out.num_tokens = packed.num_tokens;
  made->out.digest = selected.digest();
  made->out.predicted_work = packed.rank_work[rank];
  for (auto& slot : packed.slots[rank])
    made->out.slots.push_back(make_slot(std::move(slot), plan_.buckets(), options_));
  PendingStep& placed = *made;
  std::vector<size_t> slot_items;
  for (const Batch& batch : placed.out.slots) slot_items.push_back(batch.items.size());
  {
    std::lock_guard lock(mutex_);
    stats_.bytes_planned += planned;
    pending_.push_back(std::move(made));
    ++progress_;
    changed_.notify_all();
  }
  // From here on `placed` lives only as long as it has unfinished items.
  for (size_t slot = 0; slot < slot_items.size(); ++slot) {
    for (size_t i = 0; i < slot_items[slot]; ++i) {
      pool_.submit([this, &placed, slot, i] { load_item(placed, slot, i); });
    }
  }
  return true;
}

void Loader::Impl::load_item(PendingStep& step, size_t slot, size_t i) {
  Batch& batch = step.out.slots[slot];
  stepplan::Item& item = batch.items[i];
  std::string refusal;
  std::exception_ptr error;
  bool stopping = false;
  {
    std::lock_guard lock(mutex_);
    stopping = stopping_;
  }
  if (!stopping) {
    try {
      refusal = items_.load(item, batch.shape_of(i), place_of(batch, i));
    } catch (...) {
      error = std::current_exception();
    }
  }
  std::lock_guard lock(mutex_);
  ++progress_;
  ++stats_.items;
  if (!refusal.empty()) {
    ++stats_.bad_items;
    item.weight = 0.0F;
    step.out.verdicts.push_back({item.sample, std::move(refusal)});
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

RankStep Loader::Impl::next() {
  const Nanoseconds start = clock_.now();
  std::unique_ptr<PendingStep> done;
  std::shared_ptr<const stepplan::Journal> journal;
  {
    std::unique_lock lock(mutex_);
    CHILIAD_CHECK(!stopping_, "next after close");
    CHILIAD_CHECK(next_step_ < end_step_, "next past the end: step {}", next_step_);
    wait_for_front(lock);
    CHILIAD_CHECK(!stopping_, "closed while next waited");
    const bool has_front = !pending_.empty();
    if (has_front && pending_.front()->error != nullptr) std::rethrow_exception(pending_.front()->error);
    if (!has_front || pending_.front()->remaining != 0) std::rethrow_exception(planner_error_);
    done = std::move(pending_.front());
    pending_.pop_front();
    bytes_ahead_ -= done->bytes;
    ++next_step_;
    journal = journal_;
    stats_.wait_seconds += to_seconds(clock_.now() - start);
    changed_.notify_all();
  }
  auto& verdicts = done->out.verdicts;
  std::sort(verdicts.begin(), verdicts.end(),
            [](const Verdict& a, const Verdict& b) { return a.sample < b.sample; });
  if (journal->amendments().size() != done->num_amendments) apply_journal(done->out, *journal);
  return std::move(done->out);
}

void Loader::Impl::apply_journal(RankStep& step, const stepplan::Journal& journal) const {
  const stepplan::Step selected = plan_.select(step.step, journal);
  step.digest = selected.digest();
  step.num_items = step.num_tokens = 0;
  for (const stepplan::Item& item : selected.items) {
    if (item.weight <= 0.0F) continue;
    ++step.num_items;
    step.num_tokens += item.num_tokens;
  }
  for (Batch& batch : step.slots) {
    for (size_t i = 0; i < batch.items.size(); ++i) {
      stepplan::Item& item = batch.items[i];
      if (journal.weight(item.sample, step.step) > 0.0F) continue;
      item.weight = 0.0F;
      clear_item(place_of(batch, i));
    }
  }
}

void Loader::Impl::amend(const std::vector<stepplan::Amendment>& amendments) {
  std::lock_guard lock(mutex_);
  auto journal = std::make_shared<stepplan::Journal>(*journal_);
  for (const auto& amendment : amendments) journal->add(amendment);
  journal_ = std::move(journal);
}

LoaderStats Loader::Impl::stats() const {
  std::lock_guard lock(mutex_);
  LoaderStats stats = stats_;
  stats.bytes_read = items_.bytes_read();
  stats.cache_hits = items_.cache_hits();
  return stats;
}

void Loader::Impl::close() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (planner_.joinable()) planner_.join();
  pool_.close();
}

Loader::Loader(const index::Index& index, const stepplan::Plan& plan, stepplan::Journal journal,
               int64_t first_step, int64_t end_step, LoaderOptions options) {
  check_options(options);
  CHILIAD_CHECK(plan.packs_documents() == (options.documents != nullptr) &&
                    plan.packs_documents() == (options.pack.row_work != nullptr),
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
LoaderStats Loader::stats() const {
  return impl_->stats();
}
void Loader::close() {
  impl_->close();
}

}  // namespace chiliad::loader
