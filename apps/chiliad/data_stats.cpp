#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/chiliad/verbs.h"
#include "chiliad/dataset/stats.h"
#include "chiliad/index/index.h"

namespace chiliad::cli {
namespace {

void print_json(const index::Manifest& manifest, const dataset::Stats& stats) {
  nlohmann::ordered_json page{
      {"layout", manifest.layout}, {"root", manifest.root}, {"digest", manifest.digest.hex()}};
  page.update(nlohmann::ordered_json::parse(dataset::to_json(stats)));
  fmt::print("{}\n", page.dump());
}

void print_table(const index::Manifest& manifest, const dataset::Stats& stats) {
  fmt::print("{} ({}), identity {}\n", manifest.root, manifest.layout, manifest.digest.hex());
  fmt::print("{}", dataset::to_table(stats));
}

}  // namespace

void add_data_stats(CLI::App& parent, Action& action) {
  struct Arguments {
    std::string folder;
    bool json = false;
  };
  auto arguments = std::make_shared<Arguments>();  // shared by the parser and the action, until the end
  auto* verb =
      parent.add_subcommand("stats", "Shows what an index holds: counts, shapes, captions by language");
  verb->add_option("DIR", arguments->folder, "Folder made by `chiliad data index`")->required();
  verb->add_flag("--json", arguments->json, "Prints the result as one JSON object");
  verb->footer("Example: chiliad data stats photos.index");
  verb->callback([arguments, &action] {
    action = [arguments] {
      const auto index = index::Index::open(arguments->folder);
      const auto stats = dataset::compute_stats(index);
      arguments->json ? print_json(index.manifest(), stats) : print_table(index.manifest(), stats);
      return 0;
    };
  });
}

}  // namespace chiliad::cli
