#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "apps/worker/verbs.h"
#include "chiliad/device/tensor.h"
#include "chiliad/topology/topology.h"
#include "chiliad/train/probe.h"

namespace chiliad::worker {
namespace {

/// As comments of the run file that the rates go into.
void print_machine() {
  std::istringstream lines(topology::Topology::of_this_machine().machine().to_string());
  for (std::string line; std::getline(lines, line);) fmt::print("# {}\n", line);
}

struct ProbeArguments {
  std::string run_file;
  int repeats = 9;
  bool json = false;
};

int run_probe(const ProbeArguments& arguments) {
  const auto run = spec::read_run_file(arguments.run_file, {});
  device::set_compute_threads(static_cast<int>(run.parallel.threads));
  const auto rates = train::fit_rates(train::time_shapes(run, train::probe_shapes(run), arguments.repeats));
  const nlohmann::json result{{"rate_linear", rates.linear_flops_per_s},
                              {"rate_attention", rates.attention_flops_per_s},
                              {"rate_elementwise", rates.elementwise_per_s},
                              {"rate_launch", rates.launches_per_s}};
  if (arguments.json) {
    fmt::print("{}\n", result.dump());
    return 0;
  }
  print_machine();
  fmt::print("# measured for this model on this machine; put it into the run file\nparallel:\n");
  for (const auto& [key, value] : result.items()) fmt::print("  {}: {:.4g}\n", key, value.get<double>());
  return 0;
}

}  // namespace

void add_probe(CLI::App& app, int& code) {
  auto arguments = std::make_shared<ProbeArguments>();  // shared with the callback until the program ends
  auto* verb = app.add_subcommand(
      "probe", "measures the rates that packing equal work uses\nExample: chiliad probe run.yaml");
  verb->add_option("run_file", arguments->run_file, "run file")->required();
  verb->add_option("--repeats", arguments->repeats, "measurements of each shape")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  verb->add_flag("--json", arguments->json, "print JSON");
  verb->callback([arguments, &code] { code = run_probe(*arguments); });
}

}  // namespace chiliad::worker
