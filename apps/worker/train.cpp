#include <memory>

#include "apps/worker/verbs.h"
#include "chiliad/train/worker.h"

namespace chiliad::worker {

void add_train(cli::Verb& app) {
  auto arguments =
      std::make_shared<train::WorkerArguments>();  // shared with the callback until the program ends
  cli::Verb verb = app.add("train", "one rank of `chiliad train`");
  verb.option("--run-file", arguments->run_file).required();
  verb.option("--run-dir", arguments->run_dir).required();
  verb.option("--journal", arguments->journal);
  verb.option("--resume", arguments->resume);
  verb.option("--rank", arguments->rank).required();
  verb.option("--world", arguments->world).required();
  verb.option("--channel", arguments->channel).required();
  verb.option("--progress", arguments->progress).required();
  verb.option("--port", arguments->port).required();
  verb.option("--listen", arguments->listen);
  verb.option("--parent", arguments->parent).required();
  verb.run([arguments] { return train::run_worker(*arguments); });
}

}  // namespace chiliad::worker
