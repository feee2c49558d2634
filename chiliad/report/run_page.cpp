#include "chiliad/report/run_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "chiliad/base/error.h"
#include "chiliad/base/units.h"
#include "chiliad/io/file.h"
#include "chiliad/report/chart.h"
#include "chiliad/report/html.h"
#include "chiliad/spec/layer_table.h"

namespace chiliad::report {
namespace {

using observe::StepMetrics;

constexpr int64_t kMaxPictureBytes = 32LL << 20;

std::vector<double> steps_of(const RunData& run) {
  std::vector<double> steps;
  for (const auto& line : run.metrics) steps.push_back(static_cast<double>(line.step));
  return steps;
}

std::vector<double> marks_of(const RunData& run) {
  return {run.resumes.begin(), run.resumes.end()};
}

Curve curve_of(const RunData& run, const std::string& name,
               const std::function<double(const StepMetrics&)>& value) {
  Curve curve{name, {}};
  for (const auto& line : run.metrics) curve.values.push_back(value(line));
  return curve;
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100.0 * share);
}

std::string layout_text(const spec::ParallelOptions& parallel) {
  return fmt::format("{} ranks of {} threads in {}: dp_replicate {} x dp_shard {} x tp {}", parallel.nproc,
                     parallel.threads, parallel.compute, parallel.dp_replicate(), parallel.dp_shard,
                     parallel.tp);
}

std::string state_text(const RunData& run) {
  const std::string state = run.state();
  if (state == "running") return state + " (" + run.owner + ")";
  if (state == "stopped") return state + "; the same command goes on";
  return state;
}

/// Rates over the last tenth of the lines, at least one.
std::string speed_text(const RunData& run) {
  const auto count = std::max<size_t>(1, run.metrics.size() / 10);
  double wall = 0.0;
  double items = 0.0;
  double flops = 0.0;
  for (size_t i = run.metrics.size() - count; i < run.metrics.size(); ++i) {
    wall += run.metrics[i].wall;
    items += static_cast<double>(run.metrics[i].items);
    flops += run.metrics[i].flops;
  }
  if (wall <= 0.0) return "not known";
  std::string text = fmt::format("{:.4g} items/s, {:.4g} GFLOP/s", items / wall, flops / wall * 1e-9);
  const double peak = run.metrics.back().peak_flops;
  if (peak > 0.0)
    text += fmt::format(", MFU {} of {:.4g} GFLOP/s", percent(flops / wall / peak), peak * 1e-9);
  return text;
}

std::string head(const RunData& run, const PageOptions& options) {
  Table table({}, 99);
  table.add({"State", state_text(run)});
  table.add({"Step", fmt::format("{} of {}", run.step(), run.steps())});
  table.add({"Folder", run.folder});
  if (!run.resumes.empty()) {
    std::string list;
    for (const int64_t step : run.resumes) list += fmt::format("{}{}", list.empty() ? "" : ", ", step);
    table.add({"Resumes", fmt::format("{}, at step {}", run.resumes.size(), list)});
  }
  if (run.run_file.has_value()) {
    const auto& file = *run.run_file;
    table.add({"Layout", layout_text(file.parallel)});
    table.add({"Model", fmt::format("{}, {} parameters", file.model.family,
                                    spec::make_layer_table(file.model).num_params())});
  }
  if (!run.metrics.empty()) {
    const auto& last = run.metrics.back();
    double wall = 0.0;
    for (const auto& line : run.metrics) wall += line.wall;
    table.add({"Loss", fmt::format("{:.5g}", last.loss)});
    table.add({"Speed of late", speed_text(run)});
    table.add({"Time in steps", format_seconds(wall)});
  }
  const std::string name = run.run_file.has_value() ? run.run_file->run.name : run.folder;
  std::string html = "<h1>" + foreign_text(name) + "</h1>\n";
  html += "<p class=\"soft\">Made at " + escape(options.made_at) + " by <code>chiliad report</code></p>\n";
  html += table.to_html();
  for (const auto& problem : run.problems) html += paragraph("Not shown: " + problem);
  return html;
}

/// Empty where nothing was evaluated.
std::string validation_chart(const RunData& run, const std::vector<double>& marks) {
  std::vector<double> steps;
  Curve curve{"Validation loss", {}};
  for (const auto& line : run.metrics) {
    if (!line.validation_loss.has_value()) continue;
    steps.push_back(static_cast<double>(line.step));
    curve.values.push_back(*line.validation_loss);
  }
  if (steps.empty()) return "";
  return line_chart(steps, curve, {curve.name, "over data.held_out", false, marks});
}

std::string curves(const RunData& run) {
  if (run.metrics.empty()) return section("Curves", paragraph("No line of metrics has been written yet."));
  const auto steps = steps_of(run);
  const auto marks = marks_of(run);
  std::string charts;
  const auto add = [&](const std::string& title, const std::string& unit, bool from_zero, const auto& value) {
    charts += line_chart(steps, curve_of(run, title, value), {title, unit, from_zero, marks});
  };
  add("Loss", "", false, [](const StepMetrics& line) { return line.loss; });
  add("Gradient norm", "before clipping", true, [](const StepMetrics& line) { return line.grad_norm; });
  add("Learning rate", "", true, [](const StepMetrics& line) { return line.lr; });
  add("Speed", "items/s", true, [](const StepMetrics& line) { return line.items_per_s; });
  charts += validation_chart(run, marks);
  const bool has_mfu = std::any_of(run.metrics.begin(), run.metrics.end(),
                                   [](const StepMetrics& line) { return line.mfu.has_value(); });
  if (has_mfu)
    add("MFU", "% of the measured peak", true,
        [](const StepMetrics& line) { return line.mfu.has_value() ? 100.0 * *line.mfu : std::nan(""); });
  if (run.metrics.back().peak_memory > 0)
    add("Memory of tensors", "MiB, most in a line", true,
        [](const StepMetrics& line) { return static_cast<double>(line.peak_memory) / (1 << 20); });
  return section("Curves", "<div class=\"charts\">" + charts + "</div>\n");
}

/// Forward and backward by component of the model.
Table components(const RunData& run, double wall) {
  observe::ComponentSeconds sums;
  for (const auto& line : run.metrics) {
    for (const auto& [name, seconds] : line.components) sums[name] += seconds;
  }
  Table table({"component", "forward, s", "backward, s", "share"});
  for (const auto& [name, seconds] : sums) {
    table.add({name, fmt::format("{:.3f}", seconds.forward), fmt::format("{:.3f}", seconds.backward),
               wall > 0.0 ? percent((seconds.forward + seconds.backward) / wall) : "-"});
  }
  return table;
}

std::string time_account(const RunData& run) {
  if (run.metrics.empty()) return "";
  std::vector<Curve> rows;
  for (size_t row = 0; row < observe::kNumRows; ++row) {
    std::string name = observe::row_name(static_cast<observe::Row>(row));
    std::replace(name.begin(), name.end(), '_', ' ');
    rows.push_back(curve_of(run, name, [row](const StepMetrics& line) { return line.seconds[row]; }));
  }
  rows.push_back(curve_of(run, "other", [](const StepMetrics& line) { return line.other; }));
  double wall = 0.0;
  for (const auto& line : run.metrics) wall += line.wall;
  Table table({"part", "seconds", "share"});
  for (const auto& row : rows) {
    double sum = 0.0;
    for (const double value : row.values) sum += std::isfinite(value) ? value : 0.0;
    table.add({row.name, fmt::format("{:.3f}", sum), wall > 0.0 ? percent(sum / wall) : "-"});
  }
  table.add({"all", fmt::format("{:.3f}", wall), ""});
  const Table parts = components(run, wall);
  return section("Where the time went",
                 "<div class=\"charts\">" +
                     share_chart(steps_of(run), rows, {"Share of the wall time", "%", true, marks_of(run)}) +
                     "</div>\n" + table.to_html() + (parts.empty() ? "" : parts.to_html()));
}

std::string balance(const RunData& run) {
  if (run.metrics.empty()) return "";
  std::string html =
      "<div class=\"charts\">" +
      line_chart(steps_of(run),
                 curve_of(run, "imbalance", [](const StepMetrics& line) { return line.imbalance; }),
                 {"Imbalance", "predicted work of the slowest rank over the mean", false, marks_of(run)}) +
      "</div>\n";
  std::map<std::string, int64_t> sent;
  for (const auto& line : run.metrics) {
    for (const auto& [kind, bytes] : line.sent) sent[kind] += bytes;
  }
  Table table({"sent by the first rank", "bytes"});
  for (const auto& [kind, bytes] : sent) table.add({kind, format_bytes(bytes)});
  return section("Balance and traffic", html + (table.empty() ? "" : table.to_html()));
}

std::string coverage(const stepplan::Plan& plan) {
  const auto& coverage = plan.coverage();
  Table table({"samples", "number"});
  const auto row = [&](const char* what, int64_t number) {
    if (number != 0) table.add({what, std::to_string(number)});
  };
  row("in the index", coverage.in_index);
  row("in the order of the run", coverage.in_order);
  row("left out: damaged picture", coverage.bad_image);
  row("left out: no caption in the languages", coverage.no_caption);
  row("left out: aspect", coverage.aspect);
  row("left out: over data.limit", coverage.over_limit);
  row("left out: too short", coverage.too_short);
  row("documents that are cut", coverage.cut);
  row("tokens that they lose", coverage.cut_tokens);
  row("steps of an epoch", plan.steps_per_epoch());
  return table.to_html();
}

std::string data(const RunData& run, const PlanFacts& facts, const PageOptions& options) {
  std::string html;
  if (facts.plan != nullptr) {
    html += coverage(*facts.plan);
  } else if (!facts.problem.empty()) {
    html += paragraph("Coverage is not shown: " + facts.problem);
  }
  int64_t items = 0;
  int64_t bad = 0;
  for (const auto& line : run.metrics) {
    items += line.items;
    bad += line.bad_items;
  }
  html += paragraph(fmt::format("{} items were consumed, {} of them with weight 0.", items, bad));
  const auto& amendments = run.journal.amendments();
  if (amendments.empty()) return section("Data", html + paragraph("No item had to be left out."));
  html += paragraph(fmt::format("{} items are left out since they were found bad:", amendments.size()));
  Table table({"from step", "sample", "reason"}, 99);
  for (size_t i = 0; i < std::min(amendments.size(), options.max_amendments); ++i) {
    const auto& amendment = amendments[i];
    const bool known =
        facts.plan != nullptr && amendment.sample >= 0 && amendment.sample < facts.plan->coverage().in_index;
    table.add(
        {std::to_string(amendment.from_step),
         known ? std::string(facts.plan->index().key(amendment.sample)) : std::to_string(amendment.sample),
         amendment.reason});
  }
  html += table.to_html();
  if (amendments.size() > options.max_amendments)
    html += paragraph(
        fmt::format("... and {} more in journal.jsonl", amendments.size() - options.max_amendments));
  return section("Data", html);
}

std::string incidents(const RunData& run) {
  std::string html;
  if (!run.incidents.empty()) {
    Table table({"time (UTC)", "what", "where the ranks were", "committed", "saved after"}, 99);
    const auto step = [](int64_t number) { return number < 0 ? std::string("-") : std::to_string(number); };
    for (const auto& entry : run.incidents)
      table.add({entry.time, entry.message, entry.where, step(entry.last_committed), step(entry.sealed)});
    html += table.to_html();
  }
  if (!run.warnings.empty()) {
    html += paragraph(fmt::format("{} warnings and errors in log.jsonl{}:", run.num_warnings,
                                  static_cast<size_t>(run.num_warnings) > run.warnings.size()
                                      ? fmt::format(", the last {}", run.warnings.size())
                                      : ""));
    Table table({"time", "level", "message"}, 99);
    for (const auto& entry : run.warnings) table.add({entry.time, entry.level, entry.message});
    html += table.to_html();
  }
  return section("Incidents and warnings", html.empty() ? paragraph("None.") : html);
}

std::string checkpoints(const RunData& run) {
  if (run.checkpoints.empty()) return section("Checkpoints", paragraph("None."));
  Table table({"folder", "state", "step", "size", "ranks"}, 2);
  for (const auto& entry : run.checkpoints) {
    const auto& listing = entry.listing;
    const std::string state = !listing.problem.empty() ? listing.problem
                              : listing.committed      ? "committed"
                                                       : "not committed";
    const bool opened = entry.num_ranks > 0;
    table.add({listing.path.filename(), state, std::to_string(listing.step),
               opened ? format_bytes(entry.num_bytes) : "-", opened ? std::to_string(entry.num_ranks) : "-"});
  }
  return section("Checkpoints", table.to_html());
}

std::string samples(const RunData& run, const PageOptions& options) {
  if (run.samples.empty()) return "";
  std::string html;
  const size_t first = run.samples.size() - std::min(run.samples.size(), options.max_samples);
  for (size_t i = run.samples.size(); i-- > first;) {
    const auto& entry = run.samples[i];
    try {
      const auto bytes = io::read_file(entry.path, kMaxPictureBytes);
      html += fmt::format("<h3>Step {}</h3><div class=\"sample\">{}</div>\n", entry.step,
                          picture(bytes, fmt::format("samples of step {}", entry.step)));
    } catch (const Error& error) {
      html += paragraph(error.what());
    }
  }
  if (first > 0) html += paragraph(fmt::format("{} older ones are in samples/.", first));
  return section("Samples", html);
}

}  // namespace

std::string run_page(const RunData& run, const PlanFacts& facts, const PageOptions& options) {
  std::string body = head(run, options) + samples(run, options) + curves(run) + time_account(run) +
                     balance(run) + data(run, facts, options) + incidents(run) + checkpoints(run);
  if (!run.run_file_text.empty())
    body += section("Run file, resolved", "<pre>" + foreign_text(run.run_file_text) + "</pre>\n");
  return whole_page(run.run_file.has_value() ? run.run_file->run.name : run.folder, body);
}

}  // namespace chiliad::report
