#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/chiliad/verbs.h"
#include "chiliad/base/clock.h"
#include "chiliad/base/json_text.h"
#include "chiliad/base/units.h"
#include "chiliad/dataset/bad_summary.h"
#include "chiliad/dataset/build_index.h"
#include "chiliad/dataset/remote_names.h"
#include "chiliad/observe/terminal_progress.h"
#include "chiliad/remote/open_store.h"
#include "chiliad/store/reliable_store.h"

namespace chiliad::cli {
namespace {

struct Arguments {
  std::string source;
  std::string out;
  std::string images;
  dataset::IndexOptions options;
  bool json = false;
  bool quiet = false;
};

void print_report(const dataset::IndexReport& report, const Arguments& arguments, double seconds) {
  const auto& manifest = report.manifest;
  if (arguments.json) {
    const nlohmann::ordered_json page{{"index", arguments.out},
                                      {"layout", manifest.layout},
                                      {"samples", manifest.num_samples},
                                      {"bad", manifest.num_bad},
                                      {"shards", manifest.shards.size()},
                                      {"shards_reused", report.shards_reused},
                                      {"bytes_read", report.bytes_read},
                                      {"digest", manifest.digest.hex()},
                                      {"seconds", seconds}};
    fmt::print("{}\n", json_text(page));
    return;
  }
  fmt::print("{}: {} samples ({} with findings) in {} shards, layout {}, {} read in {}\n", arguments.out,
             manifest.num_samples, manifest.num_bad, manifest.shards.size(), manifest.layout,
             format_bytes(report.bytes_read), format_seconds(seconds));
  if (report.bad.empty()) return;
  const dataset::BadSample& first = report.bad.front();
  const bool key_names_file = first.key.starts_with(first.file);  // as of lines
  fmt::print("{} findings are in {}; the first: {}: {}\n", report.bad.size(),
             (std::filesystem::path(arguments.out) / "bad.jsonl").string(),
             key_names_file ? first.key : first.file, first.reason);
  if (report.bad.size() == 1) return;
  for (const auto& [kind, count] : dataset::count_reasons(report.bad, 5))
    fmt::print("  {} x {}\n", count, kind);
}

dataset::IndexReport index_remote(const Arguments& arguments, const dataset::IndexOptions& options,
                                  const dataset::Progress& progress) {
  const auto source = dataset::parse_remote_source(arguments.source);
  store::Waiter waiter;
  store::ReliableStore store(remote::open_store(source.root, waiter), {}, waiter);
  return dataset::build_remote_index(store, source.names, arguments.out, options, progress);
}

int run(const Arguments& arguments) {
  const SystemClock clock;
  const auto start = clock.now();
  observe::TerminalProgress progress(std::cerr, observe::progress_style(arguments.quiet, STDERR_FILENO),
                                     clock, {.label = "indexing", .bytes = true});
  auto options = arguments.options;
  options.images = arguments.images;
  const auto show = [&](int64_t done, int64_t total) { progress.update(done, total, ""); };
  const auto report = store::is_remote(arguments.source)
                          ? index_remote(arguments, options, show)
                          : dataset::build_index(arguments.source, arguments.out, options, show);
  progress.finish();
  print_report(report, arguments, to_seconds(clock.now() - start));
  return 0;
}

}  // namespace

void add_data_index(Verb& parent) {
  auto arguments = std::make_shared<Arguments>();  // shared by the parser and the action, until the end
  std::vector<std::string> layouts{"auto"};
  layouts.insert(layouts.end(), dataset::layout_names().begin(), dataset::layout_names().end());
  Verb verb = parent.add("index", "Makes the index of a data set where it lies; nothing is written there");
  verb.option("PATH", arguments->source,
              "Folder of tars, of pictures with captions, of *.jsonl or *.txt documents; or one .tar, "
              ".json, .jsonl, "
              ".csv or .tsv; or a mixture .yaml of LLaVA-NeXT; or s3://BUCKET/PREFIX, "
              "http(s)://HOST/shard-{000..099}.tar")
      .required();
  verb.option("--out", arguments->out, "Folder of the index; the same command again goes on after a crash")
      .required();
  verb.option("--layout", arguments->options.layout,
              "auto, tuxpaint, image_text, kohya (folders N_name), webdataset, table (metadata.jsonl, "
              "CSV), conversations (LLaVA), jsonl or text")
      .one_of(layouts)
      .show_default();
  verb.option(
      "--images", arguments->images,
      "Folder of the pictures that a .json, .jsonl, .csv, .tsv or mixture names (default: where it lies)");
  verb.option("--image-key", arguments->options.image_key,
              "Field or column of the picture's name (default: file_name, image, image_path, path, ...)");
  verb.option("--caption-key", arguments->options.caption_key,
              "Field or column of the caption (default: caption, text, prompt)");
  verb.option("--threads", arguments->options.threads, "Threads that read and hash")
      .within(1, 256)
      .show_default();
  verb.flag("--replace", arguments->options.replace,
            "The folder may hold the index of another source, which is lost");
  verb.flag("--json", arguments->json, "Prints the result as one JSON object");
  verb.flag("--quiet", arguments->quiet, "Shows no progress");
  verb.footer(
      "Example: chiliad data index photos --out photos.index\n"
      "         chiliad data index llava.json --images pictures --out llava.index\n"
      "         chiliad data index s3://bucket/set --out set.index");
  verb.run([arguments] { return run(*arguments); });
}

}  // namespace chiliad::cli
