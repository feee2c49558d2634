#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/chiliad/run_setup.h"
#include "apps/chiliad/verbs.h"
#include "chiliad/base/json_text.h"
#include "chiliad/dataset/stats.h"
#include "chiliad/index/index.h"
#include "chiliad/io/file.h"
#include "chiliad/report/stats_page.h"

namespace chiliad::cli {
namespace {

struct Arguments {
  std::string folder;
  std::string html;
  size_t max_pictures = report::StatsPageOptions{}.max_drawn;
  bool json = false;
};

void print_json(const index::Manifest& manifest, const dataset::Stats& stats, const std::string& html) {
  nlohmann::ordered_json page{
      {"layout", manifest.layout}, {"root", manifest.root}, {"digest", manifest.digest.hex()}};
  if (!html.empty()) page["html"] = html;
  page.update(parse_json<nlohmann::ordered_json>(dataset::to_json(stats)));
  fmt::print("{}\n", json_text(page));
}

void print_table(const index::Manifest& manifest, const dataset::Stats& stats) {
  fmt::print("{} ({}), identity {}\n", manifest.root, manifest.layout, manifest.digest.hex());
  fmt::print("{}", dataset::to_table(stats));
}

int run(const Arguments& arguments) {
  const auto index = index::Index::open(arguments.folder);
  const auto stats = dataset::compute_stats(index);
  if (!arguments.html.empty()) {
    report::StatsPageOptions options;
    options.title = arguments.folder;
    options.made_at = now_text();
    options.max_drawn = arguments.max_pictures;
    io::write_atomic(arguments.html, report::stats_page(index, stats, options));
  }
  arguments.json ? print_json(index.manifest(), stats, arguments.html) : print_table(index.manifest(), stats);
  return 0;
}

}  // namespace

void add_data_stats(Verb& parent) {
  auto arguments = std::make_shared<Arguments>();  // shared by the parser and the action, until the end
  Verb verb = parent.add("stats", "Shows what an index holds: counts, shapes, captions by language");
  verb.option("DIR", arguments->folder, "Folder made by `chiliad data index`").required();
  verb.option("--html", arguments->html,
              "Also writes a page: histograms, some pictures, and those that stand out");
  verb.option("--max-pictures", arguments->max_pictures, "Pictures drawn for the page at most")
      .within(0, 10'000)
      .show_default();
  verb.flag("--json", arguments->json, "Prints the result as one JSON object");
  verb.footer("Example: chiliad data stats photos.index --html photos.html");
  verb.run([arguments] { return run(*arguments); });
}

}  // namespace chiliad::cli
