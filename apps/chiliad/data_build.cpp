#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/chiliad/verbs.h"
#include "chiliad/base/clock.h"
#include "chiliad/base/json_text.h"
#include "chiliad/base/units.h"
#include "chiliad/dataset/build_index.h"
#include "chiliad/dataset/build_tars.h"
#include "chiliad/dataset/import_parquet.h"
#include "chiliad/io/file.h"
#include "chiliad/observe/terminal_progress.h"

namespace chiliad::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string source;
  std::string out;
  int64_t tar_mib = 512;
  bool keep_progressive = false;
  dataset::TarOptions options;
  dataset::ParquetColumns columns;
  bool json = false;
  bool quiet = false;
};

/// Runs `job(progress)` with a line of progress.
template <typename Job>
auto with_progress(const Arguments& arguments, const Clock& clock, const char* label, const Job& job) {
  observe::TerminalProgress line(std::cerr, observe::progress_style(arguments.quiet, STDERR_FILENO), clock,
                                 {.label = label, .bytes = true});
  auto result = job([&](int64_t done, int64_t total) { line.update(done, total, ""); });
  line.finish();
  return result;
}

/// An index is taken as it is; of other data one is made in the output folder.
index::Index open_source(const Arguments& arguments, const Clock& clock) {
  if (io::stat_file(fs::path(arguments.source) / "manifest.json").has_value())
    return index::Index::open(arguments.source);
  const fs::path folder = fs::path(arguments.out) / "source.index";
  dataset::IndexOptions options;
  options.threads = arguments.options.threads;
  options.image_key = arguments.columns.image;
  options.caption_key = arguments.columns.caption;
  static_cast<void>(with_progress(arguments, clock, "indexing", [&](const dataset::Progress& progress) {
    return dataset::build_index(arguments.source, folder, options, progress);
  }));
  return index::Index::open(folder);
}

/// Of parquet the rows are read, of all else an index.
dataset::TarReport build(const Arguments& arguments, const dataset::TarOptions& options, const Clock& clock,
                         int64_t& num_source) {
  if (dataset::is_parquet(arguments.source)) {
    auto report = with_progress(arguments, clock, "importing", [&](const dataset::Progress& progress) {
      return dataset::import_parquet(arguments.source, arguments.out, arguments.columns, options, progress);
    });
    num_source = report.num_samples;
    for (const auto& [kind, number] : report.dropped) num_source += number;
    return report;
  }
  const auto source = open_source(arguments, clock);
  num_source = source.num_samples();
  return with_progress(arguments, clock, "building", [&](const dataset::Progress& progress) {
    return dataset::build_tars(source, arguments.out, options, progress);
  });
}

void print_report(const Arguments& arguments, const dataset::TarReport& report, int64_t num_source,
                  double seconds) {
  if (arguments.json) {
    const nlohmann::ordered_json page{{"tars", (fs::path(arguments.out) / "tars").string()},
                                      {"index", (fs::path(arguments.out) / "index").string()},
                                      {"samples", report.num_samples},
                                      {"num_tars", report.num_tars},
                                      {"tars_reused", report.tars_reused},
                                      {"bytes", report.bytes_written},
                                      {"transcoded", report.num_transcoded},
                                      {"resized", report.num_resized},
                                      {"dropped", report.dropped},
                                      {"seconds", seconds}};
    fmt::print("{}\n", json_text(page));
    return;
  }
  fmt::print("{}: {} of {} samples in {} tars, {}, in {}; {} transcoded, {} resized\n", arguments.out,
             report.num_samples, num_source, report.num_tars, format_bytes(report.bytes_written),
             format_seconds(seconds), report.num_transcoded, report.num_resized);
  for (const auto& [kind, number] : report.dropped) fmt::print("  dropped: {} {}\n", number, kind);
  if (!report.dropped.empty())
    fmt::print("  each with its reason in {}\n", (fs::path(arguments.out) / "dropped.jsonl").string());
}

int run(const Arguments& arguments) {
  const SystemClock clock;
  const auto start = clock.now();
  auto options = arguments.options;
  options.tar_bytes = arguments.tar_mib << 20;
  options.baseline = !arguments.keep_progressive;
  int64_t num_source = 0;
  const auto report = build(arguments, options, clock, num_source);
  if (report.num_tars > 0) {
    dataset::IndexOptions indexing;
    indexing.layout = "webdataset";
    indexing.threads = options.threads;
    static_cast<void>(with_progress(arguments, clock, "indexing", [&](const dataset::Progress& progress) {
      return dataset::build_index(fs::path(arguments.out) / "tars", fs::path(arguments.out) / "index",
                                  indexing, progress);
    }));
  }
  print_report(arguments, report, num_source, to_seconds(clock.now() - start));
  return 0;
}

}  // namespace

void add_data_build(Verb& parent) {
  auto arguments = std::make_shared<Arguments>();  // shared by the parser and the action, until the end
  auto& options = arguments->options;
  Verb verb = parent.add(
      "build", "Writes pictures with captions as tars, checked, filtered and resized, and their index");
  verb.option("--from", arguments->source,
              "Index of `chiliad data index`, data that it reads, or parquet: a file, a folder, "
              "\"DIR/*.parquet\"")
      .required();
  verb.option("--out", arguments->out,
              "Folder of tars/ and index/; the same command again goes on after a crash")
      .required();
  verb.option("--where", options.where,
              fmt::format("Condition over {}", fmt::join(dataset::where_columns(), ", ")));
  verb.option("--longest-side", options.longest_side, "Larger pictures are resized to it, in pixels")
      .within(int64_t{1}, int64_t{1} << 16);
  verb.option("--shortest-side", options.shortest_side, "The same for the shorter side")
      .within(int64_t{1}, int64_t{1} << 16);
  verb.option("--quality", options.quality, "Of JPEG where a picture is resized")
      .within(1, 100)
      .show_default();
  verb.flag(
      "--keep-progressive", arguments->keep_progressive,
      "Progressive JPEG is kept (default: stored as baseline JPEG of the same pixels, quicker to read)");
  verb.option("--drop-duplicates", options.duplicate_bits,
              "Drops pictures whose 64-bit hash differs in at most N bits from an earlier one")
      .within(0, 7);
  verb.option("--image-key", arguments->columns.image,
              "Column of pictures; of parquet bytes or a struct {bytes, path} (default: image, img, ...)");
  verb.option("--caption-key", arguments->columns.caption,
              "Column or field of the caption (default: caption, text, prompt)");
  verb.option("--tar-mib", arguments->tar_mib, "Size of a tar")
      .within(int64_t{1}, int64_t{1} << 20)
      .show_default();
  verb.option("--threads", options.threads, "Threads that read, decode and encode")
      .within(1, 256)
      .show_default();
  verb.flag("--json", arguments->json, "Prints the result as one JSON object");
  verb.flag("--quiet", arguments->quiet, "Shows no progress");
  verb.footer(
      "Example: chiliad data build --from photos.index --out photos.built --where \"width >= 256 and aspect "
      "<= 2\"");
  verb.run([arguments] { return run(*arguments); });
}

}  // namespace chiliad::cli
