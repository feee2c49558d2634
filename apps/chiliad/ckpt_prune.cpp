#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "apps/chiliad/ckpt_folder.h"
#include "apps/chiliad/verbs.h"
#include "chiliad/checkpoint/commit.h"
#include "chiliad/checkpoint/reader.h"
#include "chiliad/io/file.h"
#include "chiliad/supervise/launch/run_directory.h"

namespace chiliad::cli {
namespace {

struct Arguments {
  std::string folder;
  int64_t keep = 1;
  bool json = false;
};

int run(const Arguments& arguments) {
  const auto folder = checkpoint_folder(arguments.folder);
  // Not beside a running job, which may be writing one.
  std::optional<io::FileLock> lock;
  if (folder != arguments.folder) lock = supervise::RunDirectory(arguments.folder).take();
  const auto before = checkpoint::list(folder).size();
  checkpoint::prune(folder, arguments.keep);
  const auto after = checkpoint::list(folder).size();
  if (arguments.json) {
    fmt::print("{}\n", nlohmann::ordered_json{{"removed", before - after}, {"kept", after}}.dump());
  } else {
    fmt::print("{}: {} removed, {} kept\n", folder.string(), before - after, after);
  }
  return 0;
}

}  // namespace

void add_ckpt_prune(CLI::App& parent, Action& action) {
  auto arguments = std::make_shared<Arguments>();  // shared by the parser and the action, until the end
  auto* verb = parent.add_subcommand("prune", "Removes old checkpoints and remains of unfinished ones");
  verb->add_option("DIR", arguments->folder, "Run directory or its checkpoints/")->required();
  verb->add_option("--keep", arguments->keep, "How many of the newest committed steps stay")
      ->required()
      ->check(CLI::Range(1, 1000000));
  verb->add_flag("--json", arguments->json, "Prints the result as one JSON object");
  verb->footer("Example: chiliad ckpt prune runs/cats --keep 2");
  verb->callback([arguments, &action] { action = [arguments] { return run(*arguments); }; });
}

}  // namespace chiliad::cli
