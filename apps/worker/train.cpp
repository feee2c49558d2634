#include <CLI/CLI.hpp>
#include <memory>

#include "apps/worker/verbs.h"
#include "chiliad/train/worker.h"

namespace chiliad::worker {

void add_train(CLI::App& app, int& code) {
  auto arguments =
      std::make_shared<train::WorkerArguments>();  // shared with the callback until the program ends
  auto* verb = app.add_subcommand("train", "one rank of `chiliad train`");
  verb->add_option("--run-file", arguments->run_file)->required();
  verb->add_option("--run-dir", arguments->run_dir)->required();
  verb->add_option("--journal", arguments->journal);
  verb->add_option("--resume", arguments->resume);
  verb->add_option("--rank", arguments->rank)->required();
  verb->add_option("--world", arguments->world)->required();
  verb->add_option("--channel", arguments->channel)->required();
  verb->add_option("--progress", arguments->progress)->required();
  verb->add_option("--port", arguments->port)->required();
  verb->add_option("--listen", arguments->listen);
  verb->add_option("--parent", arguments->parent)->required();
  verb->callback([arguments, &code] { code = train::run_worker(*arguments); });
}

}  // namespace chiliad::worker
