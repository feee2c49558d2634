#include <fmt/core.h>
#include <csignal>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "apps/chiliad/asked_extensions.h"
#include "apps/chiliad/verbs.h"
#include "chiliad/base/error.h"
#include "chiliad/spec/extension.h"
#include "chiliad/spec/nearest.h"

namespace chiliad::cli {
namespace {

constexpr int kWrongUse = 2;

void add_verbs(CLI::App& app, Action& action) {
  app.require_subcommand(1);
  auto* data = app.add_subcommand("data", "Indexes data where it lies, and shows what a run will see of it");
  data->require_subcommand(1);
  add_data_index(*data, action);
  add_data_build(*data, action);
  add_data_stats(*data, action);
  add_data_verify(*data, action);
  add_data_pack(*data, action);
  add_data_plan(*data, action);
  add_encode(app, action);
  add_data_show(*data, action);
  add_data_quarantine(*data, action);
  add_train(app, action);
  add_verify_layout(app, action);
  add_worker_verbs(app);
  auto* ckpt =
      app.add_subcommand("ckpt", "Lists, verifies, compares, exports, imports and prunes checkpoints");
  ckpt->require_subcommand(1);
  add_ckpt_ls(*ckpt, action);
  add_ckpt_verify(*ckpt, action);
  add_ckpt_diff(*ckpt, action);
  add_ckpt_export(*ckpt, action);
  add_ckpt_import(*ckpt, action);
  add_ckpt_prune(*ckpt, action);
  add_report(app, action);
  add_new(app, action);
  add_docs(app, action);
  add_version(app, action);
}

std::vector<std::string> verb_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(verb->get_name());
  return names;
}

/// Null where there is none of that name.
CLI::App* find_verb(CLI::App& app, const std::string& name) {
  for (auto* verb : app.get_subcommands([](CLI::App*) { return true; })) {
    if (verb->get_name() == name) return verb;
  }
  return nullptr;
}

/// CLI11 takes an unknown verb for a positional argument and its message names no verb.
void check_verbs(CLI::App& app, const std::vector<std::string>& arguments) {
  CLI::App* at = &app;
  std::string path = app.get_name();
  for (const auto& argument : arguments) {
    const auto names = verb_names(*at);
    if (names.empty() || argument.starts_with('-')) return;
    auto* next = find_verb(*at, argument);
    if (next == nullptr) {
      throw InvalidInput(path,
                         fmt::format("unknown verb '{}'. {}", argument, spec::did_you_mean(argument, names)));
    }
    at = next;
    path += " " + argument;
  }
  if (!verb_names(*at).empty()) {
    std::string list;
    for (const auto& name : verb_names(*at)) list += (list.empty() ? "" : ", ") + name;
    throw InvalidInput(path, fmt::format("expected a verb: {}. See {} --help", list, path));
  }
}

/// The verb that the arguments name, for the hint at its help.
std::string verb_path(CLI::App& app, const std::vector<std::string>& arguments) {
  CLI::App* at = &app;
  std::string path = app.get_name();
  for (const auto& argument : arguments) {
    at = find_verb(*at, argument);
    if (at == nullptr) break;
    path += " " + argument;
  }
  return path;
}

int report_wrong_use(CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& arguments) {
  std::string what = error.what();
  what = what.substr(0, what.find('\n'));
  const auto path = verb_path(app, arguments);
  fmt::print(stderr, "error: {}: {}. See {} --help\n", path, what, path);
  return kWrongUse;
}

int run(std::vector<std::string> arguments) {
  if (!arguments.empty() && arguments[0] == "help") arguments[0] = "--help";
  if (!arguments.empty() && is_worker_verb(arguments[0])) become_worker(arguments);
  Action action;
  CLI::App app("Chiliad trains multimodal models.", "chiliad");
  app.footer(
      "Example: chiliad data index photos --out photos.index && chiliad train run.yaml\n"
      "Exit codes: 0 ok, 1 failed or unavailable, 2 wrong use or input, 3 damaged data, 4 worker lost, 5 "
      "internal");
  app.failure_message(CLI::FailureMessage::simple);
  add_verbs(app, action);
  check_verbs(app, arguments);
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    return report_wrong_use(app, error, arguments);
  }
  return action();
}

}  // namespace
}  // namespace chiliad::cli

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit fails, as on a full disk
  chiliad::spec::set_extension_source(chiliad::cli::ask_worker);
  try {
    const int code = chiliad::cli::run({argv + 1, argv + argc});
    return std::fflush(stdout) == 0 ? code : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return chiliad::exit_code(error);
  }
}
