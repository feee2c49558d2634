#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/chiliad/run_setup.h"
#include "apps/chiliad/verbs.h"
#include "chiliad/base/clock.h"
#include "chiliad/base/json_text.h"
#include "chiliad/base/log.h"
#include "chiliad/base/units.h"
#include "chiliad/dataset/bad_list.h"
#include "chiliad/dataset/verify.h"
#include "chiliad/features/verify_columns.h"
#include "chiliad/index/index.h"
#include "chiliad/io/file.h"
#include "chiliad/observe/terminal_progress.h"
#include "chiliad/report/verify_page.h"

namespace chiliad::cli {
namespace {

constexpr int kDamaged = 3;
constexpr size_t kMostShown = 20;

struct Arguments {
  std::string folder;
  std::string html;
  size_t max_items = report::VerifyPageOptions{}.max_items;
  int threads = 2;
  bool json = false;
  bool quiet = false;
};

void print_json(const dataset::VerifyReport& report, const features::ColumnsReport& columns,
                const index::Index& index) {
  nlohmann::ordered_json page{{"samples", index.num_samples()},
                              {"parts", report.num_parts},
                              {"bytes", report.bytes_read},
                              {"columns", columns.num_columns},
                              {"features", columns.num_features},
                              {"column_bytes", columns.bytes_read},
                              {"unfinished_columns", columns.unfinished},
                              {"damaged", report.problems.size()}};
  page["findings"] = nlohmann::ordered_json::array();
  for (const auto& problem : report.problems) {
    page["findings"].push_back({{"key", problem.key}, {"file", problem.file}, {"reason", problem.what}});
  }
  fmt::print("{}\n", json_text_replacing(page));
}

std::string columns_text(const features::ColumnsReport& columns) {
  std::string text;
  if (columns.num_columns > 0)
    text += fmt::format("; {} features of {} encoded columns, {}", columns.num_features, columns.num_columns,
                        format_bytes(columns.bytes_read));
  for (const auto& name : columns.unfinished)
    text += fmt::format("; {} is not finished and was not read", name);
  return text;
}

void print_text(const dataset::VerifyReport& report, const features::ColumnsReport& columns,
                const std::string& folder) {
  for (size_t i = 0; i < std::min(kMostShown, report.problems.size()); ++i) {
    const auto& problem = report.problems[i];
    fmt::print("{}: {}{}{}\n", problem.file, problem.key, problem.key.empty() ? "" : ": ", problem.what);
  }
  if (report.problems.size() > kMostShown) fmt::print("and {} more\n", report.problems.size() - kMostShown);
  fmt::print("{}: {} problems in {} parts, {}{}\n", folder, report.problems.size(), report.num_parts,
             format_bytes(report.bytes_read), columns_text(columns));
}

void write_page(const Arguments& arguments, const index::Index& index, const dataset::VerifyReport& report) {
  report::VerifyPageOptions options;
  options.title = arguments.folder;
  options.made_at = now_text();
  options.max_items = arguments.max_items;
  const auto refused = dataset::read_bad_list(index.folder() / "bad.jsonl");
  if (!refused.has_value()) log_warn("{}: bad.jsonl cannot be read", arguments.folder);
  io::write_atomic(
      arguments.html,
      report::verify_page(index, report, refused.value_or(std::vector<dataset::BadSample>()), options));
}

int run(const Arguments& arguments) {
  const auto index = index::Index::open(arguments.folder);
  const SystemClock clock;
  const auto style = observe::progress_style(arguments.quiet, STDERR_FILENO);
  const auto with_progress = [&](const char* label, const auto& reads) {
    observe::TerminalProgress progress(std::cerr, style, clock, {.label = label, .bytes = true});
    auto report = reads([&](int64_t done, int64_t total) { progress.update(done, total, ""); });
    progress.finish();
    return report;
  };
  auto report = with_progress(
      "verifying", [&](const auto& progress) { return dataset::verify(index, arguments.threads, progress); });
  const auto columns = with_progress("verifying encoded columns", [&](const auto& progress) {
    return features::verify_columns(index, arguments.threads, progress);
  });
  for (const auto& problem : columns.problems) report.problems.push_back({problem.file, "", problem.what});
  if (!arguments.html.empty()) write_page(arguments, index, report);
  arguments.json ? print_json(report, columns, index) : print_text(report, columns, arguments.folder);
  return report.problems.empty() ? 0 : kDamaged;
}

}  // namespace

void add_data_verify(Verb& parent) {
  auto arguments = std::make_shared<Arguments>();  // shared by the parser and the action, until the end
  Verb verb = parent.add(
      "verify", "Reads every byte that an index and its encoded columns name and compares its checksum");
  verb.option("DIR", arguments->folder, "Folder made by `chiliad data index`").required();
  verb.option("--threads", arguments->threads, "Threads that read").within(1, 256);
  verb.option("--html", arguments->html,
              "Also writes a page: what is damaged, what was refused when it was indexed, and why");
  verb.option("--max-items", arguments->max_items, "Items shown on the page at most")
      .within(0, 10'000)
      .show_default();
  verb.flag("--json", arguments->json, "Prints the result as one JSON object");
  verb.flag("--quiet", arguments->quiet, "Shows no progress");
  verb.footer(
      "Example: chiliad data verify photos.index\nExit code 3 where something is damaged or missing.");
  verb.run([arguments] { return run(*arguments); });
}

}  // namespace chiliad::cli
