#include "chiliad/stepplan/report.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "chiliad/base/error.h"
#include "chiliad/spec/shape_stages.h"
#include "chiliad/stepplan/pack_padded.h"
#include "chiliad/stepplan/pack_rows.h"

namespace chiliad::stepplan {
namespace {

// Steps that are dealt in turn, too, for comparison.
constexpr int64_t kComparedSteps = 32;

double part_of(double part, double whole) {
  return whole > 0.0 ? part / whole : 0.0;
}

class Reporter {
 public:
  Reporter(const Plan& plan, const PackOptions& options, PlanReport& report)
      : plan_(plan), options_(options), in_turn_(options), report_(report) {
    in_turn_.in_order = true;
    in_turn_.sync = Sync::kStep;
    report_.packs_documents = plan.packs_documents();
    report_.packs_pictures = options.packs_pictures();
    report_.pads = options.pad;
    report_.max_row_tokens = options.max_tokens;
    report_.sync = options.sync;
    for (const Bucket bucket : plan.buckets()) report_.buckets.push_back({bucket});
    add_stages();
    if (options.num_components() > 1) {
      for (const std::string& name : options.components) report_.components.push_back({name});
    }
    seen_.resize(static_cast<size_t>(report.coverage.in_index));
  }

  void add(const Step& step) {
    const auto count = static_cast<int64_t>(step.items.size());
    if (!report_.stages.empty()) ++report_.stages[plan_.stages()->stage_of(step.step)].steps;
    report_.items_min = report_.items == 0 ? count : std::min(report_.items_min, count);
    report_.items_max = std::max(report_.items_max, count);
    std::vector<int32_t> shown;
    int32_t last_pack = -1;
    for (const Item& item : step.items) {
      add(item);
      shown.push_back(item.bucket);
      if (item.pack >= 0 && item.pack != last_pack) ++report_.packs;
      last_pack = item.pack;
    }
    std::sort(shown.begin(), shown.end());
    shown.erase(std::unique(shown.begin(), shown.end()), shown.end());
    for (const int32_t bucket : shown) ++report_.buckets[static_cast<size_t>(bucket)].steps;
    const PackedStep packed = pack(step, plan_.buckets(), options_);
    for (const auto& slots : packed.slots) {
      for (const MicroBatch& slot : slots) add(slot);
    }
    add_balance(step, packed);
    report_.slots_mean += static_cast<double>(packed.slots[0].size());
  }

  void finish() {
    const auto steps = static_cast<double>(report_.steps);
    const auto items = static_cast<double>(report_.items);
    report_.balance_mean /= steps;
    report_.balance_bound_mean /= steps;
    report_.balance_time /= steps;
    report_.balance_in_order =
        compared_ > 0 ? report_.balance_in_order / static_cast<double>(compared_) : 1.0;
    for (auto& component : report_.components) {
      component.mean /= steps;
      component.bound_mean /= steps;
    }
    report_.slots_mean /= steps;
    if (options_.max_tokens > 0 && !options_.pad) {
      report_.row_fill = part_of(static_cast<double>(row_positions_),
                                 report_.micro_batches * static_cast<double>(options_.max_tokens));
    }
    report_.micro_batches /= steps * options_.num_ranks;
    report_.cropped_mean = part_of(report_.cropped_mean, items);
    // A full shuffle moves an item by a third of the whole on average.
    report_.displacement =
        part_of(report_.displacement, items * static_cast<double>(report_.coverage.in_index) / 3.0);
    report_.neighbours_kept = part_of(report_.neighbours_kept, items);
    report_.missed = report_.coverage.in_order - (report_.items - report_.repeated);
    std::erase_if(report_.buckets, [](const auto& count) { return count.items == 0; });
  }

 private:
  void add_stages() {
    const auto stages = plan_.stage_options();
    for (size_t s = 0; stages.size() > 1 && s < stages.size(); ++s)
      report_.stages.push_back({plan_.stages()->from(s), spec::shapes_in_words(stages[s])});
  }

  void add_balance(const Step& step, const PackedStep& packed) {
    const Balance balance = balance_of(packed, options_);
    const Balance bound = granularity_of(packed, plan_.buckets(), options_);
    report_.balance_mean += balance.total;
    report_.balance_worst = std::max(report_.balance_worst, balance.total);
    report_.balance_bound_mean += bound.total;
    report_.balance_bound_worst = std::max(report_.balance_bound_worst, bound.total);
    report_.balance_time += balance.time;
    for (size_t c = 0; c < report_.components.size(); ++c) {
      auto& component = report_.components[c];
      component.mean += balance.components[c];
      component.worst = std::max(component.worst, balance.components[c]);
      component.bound_mean += bound.components[c];
      component.bound_worst = std::max(component.bound_worst, bound.components[c]);
    }
    const int64_t stride = std::max<int64_t>(1, report_.steps / kComparedSteps);
    if (options_.pad || step.step % stride != 0) return;
    report_.balance_in_order += balance_of(pack(step, plan_.buckets(), in_turn_), in_turn_).total;
    ++compared_;
  }

  void add(const Item& item) {
    const Bucket bucket = plan_.buckets()[static_cast<size_t>(item.bucket)];
    ++report_.buckets[static_cast<size_t>(item.bucket)].items;
    report_.tokens += item.num_tokens;
    report_.pixels += int64_t{bucket.width} * bucket.height;
    const auto image = plan_.packs_documents() ? nullptr : plan_.index().image_part(item.sample);
    if (image != nullptr) {
      report_.cropped_mean += cropped_part(image->width, image->height, bucket);
      if (static_cast<int64_t>(image->width) < bucket.width ||
          static_cast<int64_t>(image->height) < bucket.height)
        ++report_.enlarged;
    }
    const double place = static_cast<double>(report_.items) * static_cast<double>(report_.coverage.in_index) /
                         static_cast<double>(report_.coverage.in_order);
    report_.displacement += std::abs(static_cast<double>(item.sample) - place);
    if (item.sample == last_sample_ + 1) report_.neighbours_kept += 1.0;
    last_sample_ = item.sample;
    ++report_.items;
    const auto sample = static_cast<size_t>(item.sample);
    if (seen_.at(sample)) ++report_.repeated;
    seen_[sample] = true;
  }

  void add(const MicroBatch& slot) {
    if (slot.items.empty()) return;
    report_.micro_batches += 1.0;
    if (options_.max_tokens > 0 && !options_.pad) {
      for (const Item& item : slot.items) row_positions_ += row_positions(item, plan_.buckets(), options_);
      return;
    }
    const PaddedShape shape = padded_shape(slot.items, plan_.buckets());
    for (const Item& item : slot.items) {
      const Bucket bucket = plan_.buckets()[static_cast<size_t>(item.bucket)];
      report_.padded_tokens += shape.tokens - item.num_tokens;
      report_.padded_pixels +=
          int64_t{shape.picture.width} * shape.picture.height - int64_t{bucket.width} * bucket.height;
    }
  }

  const Plan& plan_;
  const PackOptions& options_;
  PackOptions in_turn_;
  PlanReport& report_;
  std::vector<bool> seen_;  // of the index
  int64_t last_sample_ = -2;
  int64_t row_positions_ = 0;  // of all rows
  int64_t compared_ = 0;
};

}  // namespace

PlanReport make_report(const Plan& plan, const Journal& journal, int64_t epoch, const PackOptions& options,
                       const PlanProgress& progress) {
  CHILIAD_CHECK_GE(epoch, 0);
  PlanReport report;
  report.epoch = epoch;
  report.num_ranks = options.num_ranks;
  const int64_t first_step = epoch * plan.steps_per_epoch();
  report.steps = plan.steps_per_epoch();
  if (const auto end = plan.num_steps())
    report.steps = std::clamp(*end - first_step, int64_t{0}, report.steps);
  if (report.steps == 0) {
    throw InvalidInput(
        "epoch",
        fmt::format("expected one below {}, after which all data.sources have ended, got {}",
                    (*plan.num_steps() + plan.steps_per_epoch() - 1) / plan.steps_per_epoch(), epoch));
  }
  report.sources = items_of_sources(plan, first_step, first_step + report.steps);
  report.windows = plan.num_windows();
  report.coverage = plan.coverage();
  report.balance_mean = report.balance_bound_mean = report.balance_time = report.balance_in_order = 0.0;
  Reporter reporter(plan, options, report);
  for (int64_t step = 0; step < report.steps; ++step) {
    if (progress) progress(step, report.steps);
    reporter.add(plan.select(first_step + step, journal));
  }
  reporter.finish();
  if (progress) progress(report.steps, report.steps);
  return report;
}

}  // namespace chiliad::stepplan
