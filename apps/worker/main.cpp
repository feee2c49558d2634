#include <fmt/core.h>
#include <csignal>

#include <exception>

#include "apps/worker/verbs.h"
#include "chiliad/base/error.h"
#include "chiliad/base/log.h"
#include "chiliad/extension/load.h"

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit fails, as on a full disk
  chiliad::spec::set_extension_source(chiliad::extension::load_extensions);
  chiliad::cli::CommandLine line(
      "chiliad",
      "chiliad-worker: the verbs of chiliad that need tensors. Started by `chiliad`, not by hand.");
  chiliad::worker::add_train(line);
  chiliad::worker::add_generate(line);
  chiliad::worker::add_eval(line);
  chiliad::worker::add_probe(line);
  chiliad::worker::add_encode(line);
  chiliad::worker::add_verify_layout(line);
  chiliad::worker::add_extensions(line);
  try {
    return line.parse_and_run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return chiliad::exit_code(error);
  }
}
