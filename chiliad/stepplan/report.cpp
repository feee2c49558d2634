#include "chiliad/stepplan/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "chiliad/base/error.h"
#include "chiliad/stepplan/pack_rows.h"

namespace chiliad::stepplan {
namespace {

double part_of(double part, double whole) {
  return whole > 0.0 ? part / whole : 0.0;
}

double cropped_part(const index::Part& image, Bucket bucket) {
  const double ratio =
      static_cast<double>(image.width) * bucket.height / (static_cast<double>(image.height) * bucket.width);
  return 1.0 - std::min(ratio, 1.0 / ratio);
}

class Reporter {
 public:
  Reporter(const Plan& plan, const PackOptions& options, PlanReport& report)
      : plan_(plan), options_(options), report_(report) {
    report_.packs_documents = plan.packs_documents();
    report_.packs_pictures = options.packs_pictures();
    report_.max_row_tokens = options.max_tokens;
    for (const Bucket bucket : plan.buckets()) report_.buckets.push_back({bucket, 0});
  }

  void add(const Step& step) {
    const auto count = static_cast<int64_t>(step.items.size());
    report_.items_min = report_.items == 0 ? count : std::min(report_.items_min, count);
    report_.items_max = std::max(report_.items_max, count);
    for (const Item& item : step.items) add(item);
    const PackedStep packed = pack(step, plan_.buckets(), options_);
    for (const auto& slots : packed.slots) {
      for (const MicroBatch& slot : slots) add(slot);
    }
    const double bound = granularity_bound(packed, plan_.buckets(), options_);
    report_.balance_mean += packed.imbalance();
    report_.balance_worst = std::max(report_.balance_worst, packed.imbalance());
    report_.balance_bound_mean += bound;
    report_.balance_bound_worst = std::max(report_.balance_bound_worst, bound);
    report_.slots_mean += static_cast<double>(packed.slots[0].size());
  }

  void finish() {
    const auto steps = static_cast<double>(report_.steps);
    const auto items = static_cast<double>(report_.items);
    report_.balance_mean /= steps;
    report_.balance_bound_mean /= steps;
    report_.slots_mean /= steps;
    if (options_.max_tokens > 0) {
      report_.row_fill = part_of(static_cast<double>(row_positions_),
                                 report_.micro_batches * static_cast<double>(options_.max_tokens));
    }
    report_.micro_batches /= steps * options_.num_ranks;
    report_.cropped_mean = part_of(report_.cropped_mean, items);
    // A full shuffle moves an item by a third of the whole on average.
    report_.displacement =
        part_of(report_.displacement, items * static_cast<double>(report_.coverage.in_index) / 3.0);
    report_.neighbours_kept = part_of(report_.neighbours_kept, items);
  }

 private:
  void add(const Item& item) {
    const Bucket bucket = plan_.buckets()[static_cast<size_t>(item.bucket)];
    ++report_.buckets[static_cast<size_t>(item.bucket)].items;
    report_.tokens += item.num_tokens;
    report_.pixels += int64_t{bucket.width} * bucket.height;
    const auto image = plan_.packs_documents() ? nullptr : plan_.index().image_part(item.sample);
    if (image != nullptr) {
      report_.cropped_mean += cropped_part(*image, bucket);
    }
    const double place = static_cast<double>(report_.items) * static_cast<double>(report_.coverage.in_index) /
                         static_cast<double>(report_.coverage.in_order);
    report_.displacement += std::abs(static_cast<double>(item.sample) - place);
    if (item.sample == last_sample_ + 1) report_.neighbours_kept += 1.0;
    last_sample_ = item.sample;
    ++report_.items;
  }

  void add(const MicroBatch& slot) {
    if (slot.items.empty()) return;
    report_.micro_batches += 1.0;
    if (options_.max_tokens > 0) {
      for (const Item& item : slot.items) row_positions_ += row_positions(item, plan_.buckets(), options_);
      return;
    }
    int64_t longest = 0;
    for (const Item& item : slot.items) longest = std::max<int64_t>(longest, item.num_tokens);
    for (const Item& item : slot.items) report_.padded_tokens += longest - item.num_tokens;
  }

  const Plan& plan_;
  const PackOptions& options_;
  PlanReport& report_;
  int64_t last_sample_ = -2;
  int64_t row_positions_ = 0;  // of all rows, mode pack
};

}  // namespace

double granularity_bound(const PackedStep& packed, const std::vector<Bucket>& buckets,
                         const PackOptions& options) {
  std::vector<double> shares;  // of a full micro-batch: the least that an item may cost
  for (const auto& slots : packed.slots) {
    for (const MicroBatch& slot : slots) {
      for (const Item& item : slot.items) {
        if (options.max_tokens > 0) {
          shares.push_back(row_share(item, buckets, options));
          continue;
        }
        const Bucket bucket = buckets[static_cast<size_t>(item.bucket)];
        shares.push_back(options.work(bucket, options.max_items, item.num_tokens) /
                         static_cast<double>(options.max_items));
      }
    }
  }
  const double total = std::accumulate(packed.rank_work.begin(), packed.rank_work.end(), 0.0);
  if (shares.empty() || total <= 0.0) return 1.0;
  std::sort(shares.begin(), shares.end());
  const auto ranks = static_cast<size_t>(options.num_ranks);
  double crowded = 0.0;
  for (size_t k = 1; k * ranks < shares.size(); ++k) {
    const auto largest = shares.end() - static_cast<ptrdiff_t>(k * ranks + 1);
    crowded = std::max(crowded, std::accumulate(largest, largest + static_cast<ptrdiff_t>(k + 1), 0.0));
  }
  const size_t most = (shares.size() + ranks - 1) / ranks;
  const double least = std::accumulate(shares.begin(), shares.begin() + static_cast<ptrdiff_t>(most), 0.0);
  return std::max(1.0, std::max({least, crowded, shares.back()}) * static_cast<double>(ranks) / total);
}

PlanReport make_report(const Plan& plan, const Journal& journal, int64_t epoch, const PackOptions& options) {
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
  report.balance_mean = report.balance_bound_mean = 0.0;
  Reporter reporter(plan, options, report);
  for (int64_t step = 0; step < report.steps; ++step) {
    reporter.add(plan.select(first_step + step, journal));
  }
  reporter.finish();
  return report;
}

std::string PlanReport::to_json() const {
  nlohmann::ordered_json json{
      {"epoch", epoch},
      {"ranks", num_ranks},
      {"steps", steps},
      {"windows", windows},
      {"items", items},
      {"items_a_step", {{"min", items_min}, {"max", items_max}}},
      {"coverage",
       {{"in_index", coverage.in_index},
        {"in_order", coverage.in_order},
        {"bad_image", coverage.bad_image},
        {"no_caption", coverage.no_caption},
        {"aspect", coverage.aspect},
        {"over_limit", coverage.over_limit},
        {"held_out", coverage.held_out}}},
      {"tokens", tokens},
      {"padded_tokens", padded_tokens},
      {"pixels", pixels},
      {"padded_pixels", 0},
      {"cropped_mean", cropped_mean},
      {"balance",
       {{"mean", balance_mean},
        {"worst", balance_worst},
        {"bound_mean", balance_bound_mean},
        {"bound_worst", balance_bound_worst},
        {"slots", slots_mean},
        {"micro_batches", micro_batches}}},
      {"shuffle", {{"displacement", displacement}, {"neighbours_kept", neighbours_kept}}},
  };
  for (const auto& source : sources) {
    json["sources"].push_back({{"name", source.name},
                               {"in_order", source.coverage.in_order},
                               {"left_out", source.coverage.in_index - source.coverage.in_order},
                               {"items", source.items},
                               {"epochs", source.epochs},
                               {"share", source.share}});
  }
  if (packs_documents || packs_pictures) json["rows"] = {{"max_tokens", max_row_tokens}, {"fill", row_fill}};
  if (packs_documents) {
    json["documents"] = {
        {"too_short", coverage.too_short}, {"cut", coverage.cut}, {"cut_tokens", coverage.cut_tokens}};
    return json.dump(2);
  }
  for (const auto& [bucket, count] : buckets) {
    json["buckets"].push_back({{"width", bucket.width}, {"height", bucket.height}, {"items", count}});
  }
  return json.dump(2);
}

std::string PlanReport::to_table() const {
  std::string text;
  const auto row = [&](const char* name, const std::string& value) {
    text += fmt::format("{:<22}{}\n", name, value);
  };
  row("epoch", fmt::format("{} of {} steps in {} windows", epoch, steps, windows));
  row("items", fmt::format("{}, {} to {} a step", items, items_min, items_max));
  if (packs_documents) {
    row("left out", fmt::format("{} of {} in the index: {} empty, {} too short, {} over the limit",
                                coverage.in_index - coverage.in_order, coverage.in_index, coverage.no_caption,
                                coverage.too_short, coverage.over_limit));
    row("tokens",
        fmt::format("{}; {} documents are cut and lose {}", tokens, coverage.cut, coverage.cut_tokens));
    row("padding",
        fmt::format("0; rows of at most {} tokens are {:.1f} % full", max_row_tokens, 100.0 * row_fill));
    return text + table_of_work() + table_of_sources();
  }
  row("left out",
      fmt::format("{} of {} in the index: {} bad images, {} without caption, {} aspect, {} over the limit",
                  coverage.in_index - coverage.in_order, coverage.in_index, coverage.bad_image,
                  coverage.no_caption, coverage.aspect, coverage.over_limit));
  row("caption padding", fmt::format("{:.1f} % of {} tokens",
                                     100.0 * part_of(static_cast<double>(padded_tokens),
                                                     static_cast<double>(tokens + padded_tokens)),
                                     tokens + padded_tokens));
  row("pixel padding",
      fmt::format("0 of {}; buckets cut off {:.1f} % of a picture", pixels, 100.0 * cropped_mean));
  if (packs_pictures)
    row("packs", fmt::format("of pictures of any shapes, at most {} positions, are {:.1f} % full",
                             max_row_tokens, 100.0 * row_fill));
  text += table_of_work() + table_of_sources();
  text += "bucket       items\n";
  for (const auto& [bucket, count] : buckets) {
    text += fmt::format("{:<13}{}\n", fmt::format("{} x {}", bucket.width, bucket.height), count);
  }
  return text;
}

std::string PlanReport::table_of_work() const {
  std::string text;
  const auto row = [&](const char* name, const std::string& value) {
    text += fmt::format("{:<22}{}\n", name, value);
  };
  row("balance",
      fmt::format("max/mean of {} ranks: mean {:.4f}, worst {:.4f} (whole items allow {:.4f}, {:.4f})",
                  num_ranks, balance_mean, balance_worst, balance_bound_mean, balance_bound_worst));
  row("micro-batches", fmt::format("{:.1f} a rank and step, {:.1f} slots", micro_batches, slots_mean));
  row("shuffle", fmt::format("displacement {:.2f} of a full shuffle, {:.2f} % of neighbours kept",
                             displacement, 100.0 * neighbours_kept));
  return text;
}

}  // namespace chiliad::stepplan
