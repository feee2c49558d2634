#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/chiliad/verbs.h"
#include "chiliad/base/units.h"
#include "chiliad/index/index.h"

namespace chiliad::cli {
namespace {

struct Spread {
  int64_t least = 0;
  int64_t median = 0;
  int64_t most = 0;
};

Spread spread(std::vector<int64_t> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  return {values.front(), values[values.size() / 2], values.back()};
}

struct Stats {
  int64_t usable = 0;
  int64_t bad_image = 0;
  int64_t no_caption = 0;
  int64_t blocks = 0;
  int64_t payload_bytes = 0;
  Spread width;
  Spread height;
  Spread caption_bytes;
  std::map<std::string, int64_t> languages;
};

Stats collect(const index::Index& index) {
  Stats stats;
  std::vector<int64_t> widths;
  std::vector<int64_t> heights;
  std::vector<int64_t> caption_bytes;
  for (const auto& shard : index.shards()) {
    stats.blocks += std::ssize(shard.blocks);
    for (const auto& block : shard.blocks) stats.payload_bytes += static_cast<int64_t>(block.payload_bytes);
    for (const auto& part : shard.parts) {
      if (part.width == 0) continue;
      widths.push_back(part.width);
      heights.push_back(part.height);
    }
    for (const auto& caption : shard.captions) {
      caption_bytes.push_back(caption.length);
      ++stats.languages[caption.language == 0 ? "unknown" : index::language_name(caption.language)];
    }
    for (const auto& sample : shard.samples) {
      const bool bad = (sample.flags & index::kBadImage) != 0;
      stats.bad_image += bad ? 1 : 0;
      stats.usable += !bad && (sample.flags & index::kHasImage) != 0 ? 1 : 0;
      stats.no_caption += (sample.flags & index::kNoCaption) != 0 ? 1 : 0;
    }
  }
  stats.width = spread(std::move(widths));
  stats.height = spread(std::move(heights));
  stats.caption_bytes = spread(std::move(caption_bytes));
  return stats;
}

nlohmann::ordered_json to_json(const Spread& spread) {
  return {{"min", spread.least}, {"median", spread.median}, {"max", spread.most}};
}

void print_json(const index::Manifest& manifest, const Stats& stats) {
  nlohmann::ordered_json page{{"layout", manifest.layout},
                              {"root", manifest.root},
                              {"digest", manifest.digest.hex()},
                              {"samples", manifest.num_samples},
                              {"usable", stats.usable},
                              {"bad_image", stats.bad_image},
                              {"no_caption", stats.no_caption},
                              {"shards", manifest.shards.size()},
                              {"blocks", stats.blocks},
                              {"payload_bytes", stats.payload_bytes},
                              {"width", to_json(stats.width)},
                              {"height", to_json(stats.height)},
                              {"caption_bytes", to_json(stats.caption_bytes)}};
  page["captions"] = stats.languages;
  fmt::print("{}\n", page.dump());
}

void print_table(const index::Manifest& manifest, const Stats& stats) {
  const auto row = [](const char* name, const std::string& value) { fmt::print("{:<14} {}\n", name, value); };
  const auto range = [](const Spread& s) {
    return fmt::format("{} .. {} (median {})", s.least, s.most, s.median);
  };
  row("source", fmt::format("{} ({})", manifest.root, manifest.layout));
  row("identity", manifest.digest.hex());
  row("samples", fmt::format("{} ({} with a usable picture, {} damaged, {} without caption)",
                             manifest.num_samples, stats.usable, stats.bad_image, stats.no_caption));
  row("payload", fmt::format("{} in {} shards, {} blocks", format_bytes(stats.payload_bytes),
                             manifest.shards.size(), stats.blocks));
  row("width", range(stats.width));
  row("height", range(stats.height));
  row("caption bytes", range(stats.caption_bytes));
  std::string languages;
  for (const auto& [name, count] : stats.languages)
    languages += fmt::format("{}{} {}", languages.empty() ? "" : ", ", name, count);
  row("captions", languages.empty() ? "none" : languages);
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
      const auto stats = collect(index);
      arguments->json ? print_json(index.manifest(), stats) : print_table(index.manifest(), stats);
      return 0;
    };
  });
}

}  // namespace chiliad::cli
