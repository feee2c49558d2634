// A plan report as JSON and as a table.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "chiliad/base/json_text.h"
#include "chiliad/stepplan/report.h"

namespace chiliad::stepplan {
namespace {

double percent(int64_t part, int64_t whole) {
  return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

std::string line(const char* name, const std::string& value) {
  return fmt::format("{:<22}{}\n", name, value);
}

nlohmann::ordered_json balance_json(const PlanReport& report) {
  nlohmann::ordered_json json{{"mean", report.balance_mean},
                              {"worst", report.balance_worst},
                              {"bound_mean", report.balance_bound_mean},
                              {"bound_worst", report.balance_bound_worst},
                              {"slots", report.slots_mean},
                              {"micro_batches", report.micro_batches},
                              {"at", report.sync == Sync::kStep ? "step" : "slot"},
                              {"time", report.balance_time},
                              {"in_turn", report.balance_in_order}};
  for (const auto& component : report.components) {
    json["components"].push_back({{"name", component.name},
                                  {"mean", component.mean},
                                  {"worst", component.worst},
                                  {"bound_mean", component.bound_mean},
                                  {"bound_worst", component.bound_worst}});
  }
  return json;
}

}  // namespace

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
        {"too_small", coverage.too_small},
        {"over_limit", coverage.over_limit},
        {"held_out", coverage.held_out},
        {"repeated", repeated},
        {"missed", missed}}},
      {"tokens", tokens},
      {"padded_tokens", padded_tokens},
      {"pixels", pixels},
      {"padded_pixels", padded_pixels},
      {"cropped_mean", cropped_mean},
      {"enlarged", enlarged},
      {"balance", balance_json(*this)},
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
  for (const auto& stage : stages)
    json["stages"].push_back({{"from", stage.from}, {"shapes", stage.shapes}, {"steps", stage.steps}});
  if (packs > 0) json["packs"] = packs;
  if ((packs_documents || packs_pictures) && !pads)
    json["rows"] = {{"max_tokens", max_row_tokens}, {"fill", row_fill}};
  if (packs_documents) {
    json["documents"] = {
        {"too_short", coverage.too_short}, {"cut", coverage.cut}, {"cut_tokens", coverage.cut_tokens}};
    return json_text(json, 2);
  }
  for (const auto& count : buckets) {
    json["buckets"].push_back({{"width", count.bucket.width},
                               {"height", count.bucket.height},
                               {"items", count.items},
                               {"steps", count.steps}});
  }
  return json_text(json, 2);
}

std::string PlanReport::to_table() const {
  std::string text;
  text += line("epoch", fmt::format("{} of {} steps in {} windows", epoch, steps, windows));
  text += line("items", fmt::format("{}, {} to {} a step", items, items_min, items_max));
  if (packs > 0)
    text += line("offline packs", fmt::format("{}, {:.1f} items each", packs,
                                              static_cast<double>(items) / static_cast<double>(packs)));
  text += line("shown again, missed", fmt::format("{}, {}", repeated, missed));
  text += table_of_items() + table_of_work() + table_of_sources();
  if (packs_documents) return text;
  for (const auto& stage : stages)
    text +=
        line("shapes", fmt::format("{} from step {} on: {} steps", stage.shapes, stage.from, stage.steps));
  text += "bucket       items     part  steps\n";
  for (const auto& count : buckets) {
    text += fmt::format("{:<13}{:<10}{:>4.1f} %  {}\n",
                        fmt::format("{} x {}", count.bucket.width, count.bucket.height), count.items,
                        percent(count.items, items), count.steps);
  }
  return text;
}

std::string PlanReport::table_of_items() const {
  std::string text;
  const int64_t left_out = coverage.in_index - coverage.in_order;
  if (packs_documents) {
    text += line("left out",
                 fmt::format("{} of {} in the index: {} empty, {} too short, {} over the limit, {} held out",
                             left_out, coverage.in_index, coverage.no_caption, coverage.too_short,
                             coverage.over_limit, coverage.held_out));
    text += line("tokens", fmt::format("{}; {} documents are cut and lose {}", tokens, coverage.cut,
                                       coverage.cut_tokens));
    if (pads)
      return text + line("padding",
                         fmt::format("{:.1f} % of {} positions",
                                     percent(padded_tokens, tokens + padded_tokens), tokens + padded_tokens));
    return text + line("padding", fmt::format("0; rows of at most {} tokens are {:.1f} % full",
                                              max_row_tokens, 100.0 * row_fill));
  }
  text += line(
      "left out",
      fmt::format("{} of {} in the index: {} bad images, {} without caption, {} aspect, {} too small, {} "
                  "over the limit, {} held out",
                  left_out, coverage.in_index, coverage.bad_image, coverage.no_caption, coverage.aspect,
                  coverage.too_small, coverage.over_limit, coverage.held_out));
  text += line("caption padding",
               fmt::format("{:.1f} % of {} tokens", percent(padded_tokens, tokens + padded_tokens),
                           tokens + padded_tokens));
  const std::string padding =
      padded_pixels == 0 ? fmt::format("0 of {}", pixels)
                         : fmt::format("{:.1f} % of {}", percent(padded_pixels, pixels + padded_pixels),
                                       pixels + padded_pixels);
  text += line("pixel padding",
               fmt::format("{}; buckets cut off {:.1f} % of a picture and enlarge {:.1f} % of them", padding,
                           100.0 * cropped_mean, percent(enlarged, items)));
  if (packs_pictures && !pads)
    text += line("packs", fmt::format("of pictures of any shapes, at most {} positions, are {:.1f} % full",
                                      max_row_tokens, 100.0 * row_fill));
  return text;
}

std::string PlanReport::table_of_work() const {
  std::string text;
  const std::string in_turn =
      pads ? "" : fmt::format("; dealt in turn {:.4f} at each step", balance_in_order);
  text += line(
      "balance",
      fmt::format("max/mean of {} ranks at each {}: mean {:.4f}, worst {:.4f} (whole items allow {:.4f}, "
                  "{:.4f}{})",
                  num_ranks, sync == Sync::kStep ? "step" : "slot", balance_mean, balance_worst,
                  balance_bound_mean, balance_bound_worst, in_turn));
  for (const auto& component : components) {
    text += line(("  " + component.name).c_str(),
                 fmt::format("mean {:.4f}, worst {:.4f} (whole items allow {:.4f}, {:.4f})", component.mean,
                             component.worst, component.bound_mean, component.bound_worst));
  }
  text +=
      line("micro-batches", fmt::format("{:.1f} a rank and step, {:.1f} slots", micro_batches, slots_mean));
  text += line("shuffle", fmt::format("displacement {:.2f} of a full shuffle, {:.2f} % of neighbours kept",
                                      displacement, 100.0 * neighbours_kept));
  return text;
}

}  // namespace chiliad::stepplan
