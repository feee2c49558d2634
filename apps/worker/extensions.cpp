#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/worker/verbs.h"
#include "chiliad/base/error_kinds.h"
#include "chiliad/base/json_text.h"
#include "chiliad/extension/load.h"
#include "chiliad/io/file.h"
#include "chiliad/spec/extension_json.h"
#include "chiliad/spec/run_file.h"

namespace chiliad::worker {
namespace {

constexpr int64_t kMostTextBytes = 4 << 20;

struct ExtensionArguments {
  std::string text_file;
  std::string answer_file;
  std::string name;
  std::string folder;
  std::vector<std::string> overrides;
};

/// Checks the whole run file, as the worker will read it, and tells what its libraries bring.
std::string describe(const ExtensionArguments& arguments) {
  spec::Extensions found;
  spec::set_extension_source([&found](const spec::ExtensionRequest& request) {
    return found = extension::load_extensions(request);
  });
  const auto run = spec::parse_run_file(io::read_text(arguments.text_file, kMostTextBytes), arguments.name,
                                        "run", arguments.overrides, arguments.folder);
  if (run.model.extension == nullptr) return spec::extensions_to_json(found, nullptr);
  const auto table = spec::make_layer_table(run.model);
  return spec::extensions_to_json(found, &table);
}

/// Errors are part of the answer: `chiliad` gives them to its user.
int run_extensions(const ExtensionArguments& arguments) {
  std::string answer;
  try {
    answer = describe(arguments);
  } catch (const std::exception& error) {
    answer = json_text(nlohmann::json{{"error", error.what()}, {"kind", kind_name(kind_of(error))}});
  }
  io::write_atomic(arguments.answer_file, answer);
  return 0;
}

}  // namespace

void add_extensions(cli::Verb& app) {
  auto arguments = std::make_shared<ExtensionArguments>();  // shared with the callback until the program ends
  cli::Verb verb = app.add("extensions", "tells `chiliad` what the libraries of a run file bring");
  verb.option("--text", arguments->text_file).required();
  verb.option("--answer", arguments->answer_file).required();
  verb.option("--name", arguments->name).required();
  verb.option("--folder", arguments->folder).required();
  verb.option("--set", arguments->overrides).repeats();
  verb.run([arguments] { return run_extensions(*arguments); });
}

}  // namespace chiliad::worker
