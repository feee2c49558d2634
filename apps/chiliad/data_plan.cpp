#include <fmt/core.h>

#include <memory>

#include "apps/chiliad/run_setup.h"
#include "apps/chiliad/verbs.h"
#include "chiliad/stepplan/report.h"

namespace chiliad::cli {
namespace {

struct Arguments {
  RunArguments run;
  int num_ranks = 0;
  int64_t epoch = 0;
};

int run(const Arguments& arguments) {
  const auto file = read_run(arguments.run);
  const auto index = loader::open_index(file.data);
  const auto inputs = loader::open_inputs(file, index);
  make_token_columns(file, index, inputs, arguments.run.quiet);
  const auto plan = open_plan(file, index, inputs, arguments.run.quiet);
  const int num_ranks = arguments.num_ranks > 0 ? arguments.num_ranks : static_cast<int>(file.parallel.dp());
  const auto report =
      stepplan::make_report(plan, stepplan::Journal(), arguments.epoch,
                            loader::pack_options(file, spec::rates_of(file.parallel), num_ranks));
  fmt::print("{}\n", arguments.run.json ? report.to_json() : report.to_table());
  return 0;
}

}  // namespace

void add_data_plan(CLI::App& parent, Action& action) {
  auto arguments = std::make_shared<Arguments>();  // shared by the parser and the action, until the end
  auto* verb = parent.add_subcommand(
      "plan", "Plans an epoch without a device: steps, padding, balance, coverage, shuffle");
  verb->add_option("RUN", arguments->run.run_file, "Run file")->required();
  verb->add_option("--ranks", arguments->num_ranks,
                   "Data-parallel ranks (default: those of section parallel)")
      ->check(CLI::Range(1, 65536));
  verb->add_option("--epoch", arguments->epoch, "Which epoch")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  add_overrides(*verb, arguments->run);
  verb->add_flag("--json", arguments->run.json, "Prints the result as one JSON object");
  verb->add_flag("--quiet", arguments->run.quiet, "Shows no progress");
  verb->footer("Example: chiliad data plan run.yaml --ranks 8");
  verb->callback([arguments, &action] { action = [arguments] { return run(*arguments); }; });
}

}  // namespace chiliad::cli
