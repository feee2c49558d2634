#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "apps/worker/verbs.h"
#include "chiliad/base/json_text.h"
#include "chiliad/device/tensor.h"
#include "chiliad/io/file.h"
#include "chiliad/ops/cpu/parallel.h"
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
  std::vector<std::string> overrides;
  int repeats = 9;
  bool json = false;
  bool formats = false;
  std::string out;
};

void print_section(const char* section, const nlohmann::json& values) {
  print_machine();
  fmt::print("# measured for this model on this machine; put it into the run file\n{}:\n", section);
  for (const auto& [key, value] : values.items()) {
    if (value.is_string()) fmt::print("  {}: {}\n", key, value.get<std::string>());
    if (value.is_number()) fmt::print("  {}: {:.4g}\n", key, value.get<double>());
  }
}

void give(const ProbeArguments& arguments, const nlohmann::json& result, const char* section) {
  if (!arguments.out.empty()) {
    io::write_atomic(arguments.out, json_text(result, 2) + "\n");
  } else if (arguments.json) {
    fmt::print("{}\n", json_text(result));
  } else {
    print_section(section, result);
  }
}

int run_formats(const ProbeArguments& arguments, const spec::RunFile& run) {
  const auto times = train::time_formats(run, arguments.repeats);
  const auto choice = train::choose_formats(run, times);
  nlohmann::json result{
      {"compute", choice.compute}, {"products", choice.products}, {"measured", nlohmann::json::array()}};
  for (const auto& time : times) {
    result["measured"].push_back(
        {{"compute", time.compute}, {"products", time.products}, {"cpu_seconds", time.cpu_seconds}});
  }
  give(arguments, result, "precision");
  return 0;
}

int run_probe(const ProbeArguments& arguments) {
  const auto run = spec::read_run_file(arguments.run_file, arguments.overrides);
  device::set_compute_threads(static_cast<int>(run.parallel.threads));
  ops::cpu::keep_freed_memory();
  if (arguments.formats) return run_formats(arguments, run);
  ops::cpu::set_fp32_products(run.parallel.products);
  const auto rates = train::fit_rates(train::time_shapes(run, train::probe_shapes(run), arguments.repeats));
  const nlohmann::json result{{"rate_linear", rates.linear_flops_per_s},
                              {"rate_attention", rates.attention_flops_per_s},
                              {"rate_elementwise", rates.elementwise_per_s},
                              {"rate_launch", rates.launches_per_s}};
  give(arguments, result, "parallel");
  return 0;
}

}  // namespace

void add_probe(cli::Verb& app) {
  auto arguments = std::make_shared<ProbeArguments>();  // shared with the callback until the program ends
  cli::Verb verb = app.add("probe",
                           "measures the rates that packing equal work uses, or which number formats are "
                           "fastest\nExample: chiliad probe run.yaml");
  verb.option("run_file", arguments->run_file, "run file").required();
  verb.option("--set", arguments->overrides, "an option of the run file: section.key=value").repeats();
  verb.option("--repeats", arguments->repeats, "measurements of each shape").within(1, 1000).show_default();
  verb.flag("--formats", arguments->formats,
            "measures precision.compute and precision.products instead, and says which auto takes");
  verb.flag("--json", arguments->json, "print JSON");
  verb.option("--out", arguments->out, "write JSON to this file");
  verb.run([arguments] { return run_probe(*arguments); });
}

}  // namespace chiliad::worker
