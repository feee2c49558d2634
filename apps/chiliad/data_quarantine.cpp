#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "apps/chiliad/run_setup.h"
#include "apps/chiliad/verbs.h"
#include "chiliad/base/clock.h"
#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/base/log.h"
#include "chiliad/checkpoint/reader.h"
#include "chiliad/features/column.h"
#include "chiliad/io/file.h"
#include "chiliad/loader/journal_file.h"
#include "chiliad/observe/terminal_progress.h"
#include "chiliad/report/quarantine.h"
#include "chiliad/supervise/launch/run_directory.h"

namespace chiliad::cli {
namespace {

struct Arguments {
  std::string folder;
  std::string out;
  std::string index;
  size_t max_items = 500;
  bool release = false;
  bool json = false;
  bool quiet = false;
};

stepplan::Journal read_journal(const std::filesystem::path& path) {
  if (!io::stat_file(path).has_value()) return {};
  return loader::read_journal(path);
}

/// Whether the stored features of a sample can be read, for runs whose models are on latents.
std::string check_features(const index::Index& index, const loader::FeatureColumns& columns, int64_t number) {
  const auto [shard, local] = index.locate(number);
  const auto check = [&, shard = shard](const auto& column, features::FeatureId id) -> std::string {
    const auto* entry = column == nullptr ? nullptr : column->find(shard, id);
    if (entry == nullptr) return "";
    std::vector<std::byte> bytes(static_cast<size_t>(entry->num_bytes));
    return column->read(shard, id, bytes);
  };
  const index::Sample sample = index.sample(number);
  std::string wrong = check(columns.latents, {local, false});
  for (uint32_t i = 0; i < sample.num_captions && wrong.empty(); ++i)
    wrong = check(columns.text, {sample.first_caption + i, false});
  return wrong.empty() ? "" : index.key(number) + ": " + wrong;
}

/// Samples that the newest checkpoint leaves out: what it was trained on cannot change any more.
std::set<int64_t> settled_samples(const supervise::RunDirectory& run) {
  std::set<int64_t> samples;
  if (!std::filesystem::is_directory(run.checkpoints())) return samples;
  const auto newest = checkpoint::newest_good(run.checkpoints(), [](const auto& path, const auto& why) {
    log_warn("checkpoint {} cannot be used: {}", path, why);
  });
  if (!newest.has_value()) return samples;
  const auto state = parse_json<nlohmann::json>(newest->state());
  const auto journal = stepplan::Journal::from_jsonl(state.at("journal").get<std::string>());
  for (const auto& amendment : journal.amendments()) samples.insert(amendment.sample);
  return samples;
}

/// Takes out of the journal what is good again and in no checkpoint. Returns how many.
int64_t release(const supervise::RunDirectory& run, const std::vector<report::QuarantinedItem>& items) {
  const auto lock = run.take();
  const auto settled = settled_samples(run);
  stepplan::Journal kept;
  int64_t released = 0;
  for (const auto& item : items) {
    const bool goes = item.state == report::ItemState::kGood && !settled.contains(item.amendment.sample);
    goes ? static_cast<void>(++released) : kept.add(item.amendment);
  }
  if (released > 0) io::write_atomic(run.journal(), kept.to_jsonl());
  return released;
}

int run(const Arguments& arguments) {
  const supervise::RunDirectory directory(arguments.folder);
  auto file = spec::read_run_file(directory.run_file().string(), {});
  if (!arguments.index.empty()) file.data.index = arguments.index;
  const auto index = loader::open_index(file.data);
  const auto columns = loader::open_inputs(file, index).columns;
  const SystemClock clock;
  observe::TerminalProgress progress(std::cerr, observe::progress_style(arguments.quiet, STDERR_FILENO),
                                     clock, {.label = "looking again", .bytes = false});
  report::QuarantineOptions options;
  options.progress = [&](int64_t done, int64_t total) { progress.update(done, total, ""); };
  if (columns.latents != nullptr)
    options.check_more = [&](int64_t sample) { return check_features(index, columns, sample); };
  const auto items = report::examine(read_journal(directory.journal()), index, options);
  progress.finish();
  const std::string out = arguments.out.empty()
                              ? (std::filesystem::path(arguments.folder) / "quarantine.html").string()
                              : arguments.out;
  io::write_atomic(out, report::quarantine_page(items, {file.run.name, now_text(), arguments.max_items}));
  const auto good = std::count_if(items.begin(), items.end(),
                                  [](const auto& item) { return item.state == report::ItemState::kGood; });
  const int64_t released = arguments.release ? release(directory, items) : 0;
  if (arguments.json) {
    fmt::print("{}\n", report::quarantine_json(items, out));
  } else {
    fmt::print("{}: {} items were found bad, {} of them are good now{}\n", out, items.size(), good,
               arguments.release ? fmt::format(", {} of them released", released) : "");
  }
  return 0;
}

}  // namespace

void add_data_quarantine(Verb& parent) {
  auto arguments = std::make_shared<Arguments>();  // shared by the parser and the action, until the end
  Verb verb = parent.add(
      "quarantine",
      "Looks again at the items that a run left out: an HTML page of what, why, and whether still");
  verb.option("RUN_DIR", arguments->folder, "Run directory; the run may be going on").required();
  verb.option("--out", arguments->out, "The page (default: quarantine.html in the run directory)");
  verb.option("--index", arguments->index, "The index, where it moved since");
  verb.option("--max-items", arguments->max_items, "Items shown at most").show_default();
  verb.flag("--release", arguments->release,
            "Uses items again that are good now and that no checkpoint has left out yet; the run must not "
            "be going on");
  verb.flag("--json", arguments->json, "Prints the result as one JSON object");
  verb.flag("--quiet", arguments->quiet, "Shows no progress");
  verb.footer("Example: chiliad data quarantine runs/cats --out bad.html");
  verb.run([arguments] { return run(*arguments); });
}

}  // namespace chiliad::cli
