#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "apps/chiliad/ckpt_folder.h"
#include "apps/chiliad/verbs.h"
#include "chiliad/base/json_text.h"
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
    fmt::print("{}\n", json_text(nlohmann::ordered_json{{"removed", before - after}, {"kept", after}}));
  } else {
    fmt::print("{}: {} removed, {} kept\n", folder.string(), before - after, after);
  }
  return 0;
}

}  // namespace

void add_ckpt_prune(Verb& parent) {
  auto arguments = std::make_shared<Arguments>();  // shared by the parser and the action, until the end
  Verb verb = parent.add("prune", "Removes old checkpoints and remains of unfinished ones");
  verb.option("DIR", arguments->folder, "Run directory or its checkpoints/").required();
  verb.option("--keep", arguments->keep, "How many of the newest committed steps stay")
      .required()
      .within(1, 1000000);
  verb.flag("--json", arguments->json, "Prints the result as one JSON object");
  verb.footer("Example: chiliad ckpt prune runs/cats --keep 2");
  verb.run([arguments] { return run(*arguments); });
}

}  // namespace chiliad::cli
