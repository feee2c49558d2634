#include <fmt/core.h>

#include <memory>

#include "apps/chiliad/run_setup.h"
#include "apps/chiliad/verbs.h"

namespace chiliad::cli {
namespace {

struct Arguments {
  RunArguments run;
  int64_t steps = 3;
};

/// Makes the index ready here, where no tensors are needed; the worker trains.
int run(const Arguments& arguments) {
  {
    const auto file = read_run(arguments.run);
    check_trainable(file);
    static_cast<void>(check_weights(file));
    const auto index = loader::open_index(file.data);
    make_token_columns(file, index, loader::open_inputs(file, index), arguments.run.quiet);
  }
  std::vector<std::string> argv{"verify-layout", arguments.run.run_file, "--steps",
                                std::to_string(arguments.steps)};
  for (const auto& setting : arguments.run.overrides) argv.insert(argv.end(), {"--set", setting});
  if (arguments.run.nproc > 0)
    argv.insert(argv.end(), {"--set", fmt::format("parallel.nproc={}", arguments.run.nproc)});
  if (arguments.run.json) argv.emplace_back("--json");
  if (arguments.run.quiet) argv.emplace_back("--quiet");
  become_worker(argv);
}

}  // namespace

void add_verify_layout(Verb& parent) {
  auto arguments = std::make_shared<Arguments>();  // shared by the parser and the action, until the end
  Verb verb =
      parent.add("verify-layout", "Proves that a layout (section parallel) gives the numbers of one device");
  verb.option("RUN", arguments->run.run_file, "Run file").required();
  verb.option("--nproc", arguments->run.nproc, "Ranks, at most 64 (parallel.nproc)").within(1, 1024);
  verb.option("--steps", arguments->steps, "Steps to compare, from the first one on")
      .within(1, 1000)
      .show_default();
  add_overrides(verb, arguments->run);
  verb.flag("--json", arguments->run.json, "Prints the result as one JSON object");
  verb.flag("--quiet", arguments->run.quiet, "Shows no progress");
  verb.footer(
      "Example: chiliad verify-layout run.yaml --nproc 4 --set parallel.dp_shard=2\n"
      "All ranks run as threads of one process, in fp32: beside activations it needs the memory of all "
      "ranks.\n"
      "Writes nothing into the run directory. Exit code 1: the numbers differ.");
  verb.run([arguments] { return run(*arguments); });
}

}  // namespace chiliad::cli
