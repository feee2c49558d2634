#include <fmt/core.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "apps/chiliad/run_setup.h"
#include "apps/chiliad/verbs.h"
#include "chiliad/base/json_text.h"
#include "chiliad/observe/terminal_progress.h"
#include "chiliad/stepplan/report.h"

namespace chiliad::cli {
namespace {

struct Arguments {
  RunArguments run;
  std::vector<int> ranks;
  std::string wait;
  int64_t epoch = 0;
};

stepplan::Sync sync_of(const Arguments& arguments, const spec::RunFile& file) {
  if (arguments.wait == "step") return stepplan::Sync::kStep;
  if (arguments.wait == "slot") return stepplan::Sync::kSlot;
  return loader::pack_options(file, spec::rates_of(file.parallel), 1).sync;
}

std::vector<stepplan::PlanReport> make_reports(const Arguments& arguments, const spec::RunFile& file) {
  const auto index = loader::open_index(file.data);
  const auto inputs = loader::open_inputs(file, index);
  make_token_columns(file, index, inputs, arguments.run.quiet);
  const auto plan = open_plan(file, index, inputs, arguments.run.quiet);
  const SystemClock clock;
  const auto style = observe::progress_style(arguments.run.quiet, 2);
  std::vector<int> ranks = arguments.ranks;
  if (ranks.empty()) ranks.push_back(static_cast<int>(file.parallel.dp()));
  std::vector<stepplan::PlanReport> reports;
  for (const int num_ranks : ranks) {
    observe::TerminalProgress bar(std::cerr, style, clock,
                                  {.label = fmt::format("plan, {} ranks", num_ranks)});
    auto options = loader::pack_options(file, spec::rates_of(file.parallel), num_ranks);
    options.sync = sync_of(arguments, file);
    reports.push_back(
        stepplan::make_report(plan, stepplan::Journal(), arguments.epoch, options,
                              [&](int64_t done, int64_t total) { bar.update(done, total, ""); }));
    bar.clear();
  }
  return reports;
}

int run(const Arguments& arguments) {
  const auto reports = make_reports(arguments, read_run(arguments.run));
  if (!arguments.run.json) {
    for (size_t i = 0; i < reports.size(); ++i) fmt::print("{}{}", i > 0 ? "\n" : "", reports[i].to_table());
    return 0;
  }
  if (reports.size() == 1) {
    fmt::print("{}\n", reports[0].to_json());
    return 0;
  }
  nlohmann::ordered_json all{{"plans", nlohmann::ordered_json::array()}};
  for (const auto& report : reports)
    all["plans"].push_back(parse_json<nlohmann::ordered_json>(report.to_json()));
  fmt::print("{}\n", json_text(all, 2));
  return 0;
}

}  // namespace

void add_data_plan(Verb& parent) {
  auto arguments = std::make_shared<Arguments>();  // shared by the parser and the action, until the end
  Verb verb =
      parent.add("plan", "Plans an epoch without a device: steps, padding, balance, coverage, shuffle");
  verb.option("RUN", arguments->run.run_file, "Run file").required();
  verb.option("--ranks", arguments->ranks,
              "Data-parallel ranks, several as 8,64,1024 (default: those of section parallel)")
      .comma_list()
      .within(1, 65536);
  verb.option("--wait", arguments->wait,
              "Where ranks wait for each other (default: as the layout of section parallel): "
              "step (replicas) or slot (sharded parameters)")
      .one_of({"step", "slot"});
  verb.option("--epoch", arguments->epoch, "Which epoch").not_negative().show_default();
  add_overrides(verb, arguments->run);
  verb.flag("--json", arguments->run.json,
            "Prints the result as one JSON object; of several --ranks a list, plans");
  verb.flag("--quiet", arguments->run.quiet, "Shows no progress");
  verb.footer("Example: chiliad data plan run.yaml --ranks 8");
  verb.run([arguments] { return run(*arguments); });
}

}  // namespace chiliad::cli
