#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "apps/chiliad/run_setup.h"
#include "apps/chiliad/verbs.h"
#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/io/file.h"
#include "chiliad/report/run_page.h"
#include "chiliad/supervise/launch/run_directory.h"

namespace chiliad::cli {
namespace {

struct Arguments {
  std::string folder;
  std::string out;
  bool json = false;
};

report::RunPaths paths_of(const std::string& folder) {
  const supervise::RunDirectory run(folder);
  return {run.path(),    run.lock(),        run.run_file(),  run.log(),    run.metrics(),
          run.journal(), run.checkpoints(), run.incidents(), run.samples()};
}

/// The plan behind a run, as long as the page needs it.
struct OpenedPlan {
  std::optional<index::Index> index;
  std::optional<stepplan::Plan> plan;
  std::string problem;
};

/// Makes no columns: a report only looks.
void open(const report::RunData& run, OpenedPlan& opened) {
  if (!run.run_file.has_value()) return;
  try {
    opened.index.emplace(loader::open_index(run.run_file->data));
    const auto inputs = loader::open_inputs(*run.run_file, *opened.index);
    opened.plan.emplace(loader::open_plan(*run.run_file, *opened.index, inputs));
  } catch (const Error& error) {
    opened.problem =
        fmt::format("{} (paths of a run file are from the folder where the run was started)", error.what());
  }
}

int run(const Arguments& arguments) {
  const auto run = report::read_run(paths_of(arguments.folder));
  OpenedPlan opened;
  open(run, opened);
  report::PageOptions options;
  options.made_at = now_text();
  const report::PlanFacts facts{opened.plan.has_value() ? &*opened.plan : nullptr, opened.problem};
  const std::string out = arguments.out.empty()
                              ? (std::filesystem::path(arguments.folder) / "report.html").string()
                              : arguments.out;
  io::write_atomic(out, report::run_page(run, facts, options));
  if (arguments.json) {
    fmt::print("{}\n", json_text(nlohmann::ordered_json{{"out", out},
                                                        {"state", run.state()},
                                                        {"step", run.step()},
                                                        {"steps", run.steps()},
                                                        {"resumes", run.resumes.size()},
                                                        {"incidents", run.incidents.size()},
                                                        {"problems", run.problems}}));
  } else {
    fmt::print("{}: {}, step {} of {}\n", out, run.state(), run.step(), run.steps());
  }
  return 0;
}

}  // namespace

void add_report(Verb& parent) {
  auto arguments = std::make_shared<Arguments>();  // shared by the parser and the action, until the end
  Verb verb = parent.add(
      "report", "Writes one HTML page about a run: curves, time, data, incidents, checkpoints, samples");
  verb.option("RUN_DIR", arguments->folder, "Run directory; the run may be going on").required();
  verb.option("--out", arguments->out, "The page (default: report.html in the run directory)");
  verb.flag("--json", arguments->json, "Prints the result as one JSON object");
  verb.footer("Example: chiliad report runs/cats --out cats.html");
  verb.run([arguments] { return run(*arguments); });
}

}  // namespace chiliad::cli
