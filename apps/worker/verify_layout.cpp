#include <fmt/core.h>
#include <unistd.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "apps/worker/verbs.h"
#include "chiliad/base/clock.h"
#include "chiliad/loader/run_inputs.h"
#include "chiliad/observe/terminal_progress.h"
#include "chiliad/train/verify_layout.h"

namespace chiliad::worker {
namespace {

constexpr int kDiffers = 1;

struct VerifyArguments {
  std::string run_file;
  std::vector<std::string> overrides;
  int64_t steps = 0;
  bool json = false;
  bool quiet = false;
};

int run_verify(const VerifyArguments& arguments) {
  const auto file = spec::read_run_file(arguments.run_file, arguments.overrides);
  const auto index = loader::open_index(file.data);
  const SystemClock clock;
  observe::TerminalProgress progress(std::cerr, observe::progress_style(arguments.quiet, STDERR_FILENO),
                                     clock, {.label = "verify"});
  const auto report = train::verify_layout(
      file, index, arguments.steps,
      [&](int64_t done, int64_t total, const std::string& which) { progress.update(done, total, which); });
  progress.finish();
  fmt::print("{}\n", arguments.json ? report.to_json() : report.to_table());
  return report.ok() ? 0 : kDiffers;
}

}  // namespace

void add_verify_layout(cli::Verb& app) {
  auto arguments = std::make_shared<VerifyArguments>();  // shared with the callback until the program ends
  cli::Verb verb = app.add("verify-layout", "the runs behind `chiliad verify-layout`");
  verb.option("run_file", arguments->run_file).required();
  verb.option("--set", arguments->overrides).repeats();
  verb.option("--steps", arguments->steps).required();
  verb.flag("--json", arguments->json);
  verb.flag("--quiet", arguments->quiet);
  verb.run([arguments] { return run_verify(*arguments); });
}

}  // namespace chiliad::worker
