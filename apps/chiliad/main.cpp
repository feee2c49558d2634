#include <fmt/core.h>
#include <csignal>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "apps/chiliad/asked_extensions.h"
#include "apps/chiliad/verbs.h"
#include "chiliad/base/error.h"
#include "chiliad/spec/extension.h"

namespace chiliad::cli {
namespace {

void add_verbs(Verb& app) {
  Verb data = app.add("data", "Indexes data where it lies, and shows what a run will see of it");
  add_data_index(data);
  add_data_build(data);
  add_data_stats(data);
  add_data_verify(data);
  add_data_pack(data);
  add_data_plan(data);
  add_encode(app);
  add_data_show(data);
  add_data_quarantine(data);
  add_train(app);
  add_verify_layout(app);
  add_worker_verbs(app);
  Verb ckpt = app.add("ckpt", "Lists, verifies, compares, exports, imports and prunes checkpoints");
  add_ckpt_ls(ckpt);
  add_ckpt_verify(ckpt);
  add_ckpt_diff(ckpt);
  add_ckpt_export(ckpt);
  add_ckpt_import(ckpt);
  add_ckpt_prune(ckpt);
  add_report(app);
  add_new(app);
  add_docs(app);
  add_version(app);
}

int run(std::vector<std::string> arguments) {
  if (!arguments.empty() && arguments[0] == "help") arguments[0] = "--help";
  if (!arguments.empty() && is_worker_verb(arguments[0])) become_worker(arguments);
  CommandLine line("chiliad", "Chiliad trains multimodal models.");
  line.footer(
      "Example: chiliad data index photos --out photos.index && chiliad train run.yaml\n"
      "Exit codes: 0 ok, 1 failed or unavailable, 2 wrong use or input, 3 damaged data, 4 worker lost, 5 "
      "internal");
  add_verbs(line);
  return line.parse_and_run(arguments);
}

}  // namespace
}  // namespace chiliad::cli

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit fails, as on a full disk
  chiliad::spec::set_extension_source(chiliad::cli::ask_worker);
  try {
    const int code = chiliad::cli::run({argv + 1, argv + argc});
    return std::fflush(stdout) == 0 ? code : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return chiliad::exit_code(error);
  }
}
