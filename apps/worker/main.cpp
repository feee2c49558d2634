#include <fmt/core.h>
#include <csignal>

#include <CLI/CLI.hpp>
#include <exception>

#include "apps/worker/verbs.h"
#include "chiliad/base/error.h"
#include "chiliad/base/log.h"
#include "chiliad/extension/load.h"

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit fails, as on a full disk
  CLI::App app{"chiliad-worker: the verbs of chiliad that need tensors. Started by `chiliad`, not by hand."};
  app.require_subcommand(1);
  chiliad::spec::set_extension_source(chiliad::extension::load_extensions);
  int code = 0;
  chiliad::worker::add_train(app, code);
  chiliad::worker::add_generate(app, code);
  chiliad::worker::add_eval(app, code);
  chiliad::worker::add_probe(app, code);
  chiliad::worker::add_encode(app, code);
  chiliad::worker::add_verify_layout(app, code);
  chiliad::worker::add_extensions(app, code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return chiliad::exit_code(error);
  }
  return code;
}
