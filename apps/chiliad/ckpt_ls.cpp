#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/chiliad/ckpt_folder.h"
#include "apps/chiliad/verbs.h"
#include "chiliad/base/json_text.h"
#include "chiliad/checkpoint/reader.h"

namespace chiliad::cli {
namespace {

int run(const std::string& folder, bool json) {
  const auto entries = checkpoint::list(checkpoint_folder(folder));
  if (json) {
    auto page = nlohmann::ordered_json::array();
    for (const auto& entry : entries) {
      page.push_back({{"path", entry.path.string()},
                      {"step", entry.step},
                      {"generation", entry.generation},
                      {"committed", entry.committed},
                      {"problem", entry.problem}});
    }
    fmt::print("{}\n", json_text(page));
    return 0;
  }
  if (entries.empty()) fmt::print("{}: no checkpoint\n", folder);
  for (const auto& entry : entries) {
    const std::string state = !entry.problem.empty() ? entry.problem
                              : entry.committed      ? "committed"
                                                     : "not committed";
    fmt::print("{:>10}  {}  {}\n", entry.step, entry.path.string(), state);
  }
  return 0;
}

}  // namespace

void add_ckpt_ls(Verb& parent) {
  struct Arguments {
    std::string folder;
    bool json = false;
  };
  auto arguments = std::make_shared<Arguments>();  // shared by the parser and the action, until the end
  Verb verb = parent.add("ls", "Lists checkpoints, newest first, without reading their payload");
  verb.option("DIR", arguments->folder, "Run directory or its checkpoints/").required();
  verb.flag("--json", arguments->json, "Prints the result as a JSON array");
  verb.footer("Example: chiliad ckpt ls runs/cats");
  verb.run([arguments] { return run(arguments->folder, arguments->json); });
}

}  // namespace chiliad::cli
