#include "apps/command_line/command_line.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "chiliad/base/error.h"
#include "chiliad/spec/nearest.h"

namespace chiliad::cli {

Option& Option::required() {
  option_->required();
  return *this;
}
Option& Option::show_default() {
  option_->capture_default_str();
  return *this;
}
Option& Option::within_integers(int64_t least, int64_t most) {
  option_->check(CLI::Range(least, most));
  return *this;
}
Option& Option::within_numbers(double least, double most) {
  option_->check(CLI::Range(least, most));
  return *this;
}
Option& Option::positive() {
  option_->check(CLI::PositiveNumber);
  return *this;
}
Option& Option::not_negative() {
  option_->check(CLI::NonNegativeNumber);
  return *this;
}
Option& Option::one_of(const std::vector<std::string>& values) {
  option_->check(CLI::IsMember(values));
  return *this;
}
Option& Option::bytes() {
  option_->transform(CLI::AsSizeValue(false));
  return *this;
}
Option& Option::repeats() {
  option_->expected(1)->take_all();
  return *this;
}
Option& Option::comma_list() {
  option_->delimiter(',');
  return *this;
}
Option& Option::needs(const Option& other) {
  option_->needs(other.option_);
  return *this;
}

Verb Verb::add(const std::string& name, const std::string& help) {
  app_->require_subcommand(1);
  return {app_->add_subcommand(name, help), chosen_};
}
template <OptionValue T>
Option Verb::option(const std::string& name, T& value, const std::string& help) {
  return Option(app_->add_option(name, value, help));
}
template Option Verb::option(const std::string&, std::string&, const std::string&);
template Option Verb::option(const std::string&, std::filesystem::path&, const std::string&);
template Option Verb::option(const std::string&, int&, const std::string&);
template Option Verb::option(const std::string&, int64_t&, const std::string&);
template Option Verb::option(const std::string&, uint64_t&, const std::string&);
template Option Verb::option(const std::string&, double&, const std::string&);
template Option Verb::option(const std::string&, std::optional<std::string>&, const std::string&);
template Option Verb::option(const std::string&, std::optional<int>&, const std::string&);
template Option Verb::option(const std::string&, std::optional<int64_t>&, const std::string&);
template Option Verb::option(const std::string&, std::optional<double>&, const std::string&);
template Option Verb::option(const std::string&, std::vector<std::string>&, const std::string&);
template Option Verb::option(const std::string&, std::vector<int>&, const std::string&);
template Option Verb::option(const std::string&, std::vector<int64_t>&, const std::string&);

Option Verb::flag(const std::string& name, bool& value, const std::string& help) {
  return Option(app_->add_flag(name, value, help));
}
void Verb::footer(const std::string& text) {
  app_->footer(text);
}
void Verb::run(std::function<int()> action) {
  app_->callback([chosen = chosen_, action = std::move(action)] { *chosen = action; });
}

namespace {

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

}  // namespace

struct CommandLine::Parser {
  Parser(const std::string& help, const std::string& program) : app(help, program) {}
  CLI::App app;
  std::function<int()> chosen;
};

CommandLine::CommandLine(const std::string& program, const std::string& help)
    : CommandLine(std::make_unique<Parser>(help, program)) {}
CommandLine::CommandLine(std::unique_ptr<Parser> parser)
    : Verb(&parser->app, &parser->chosen), parser_(std::move(parser)) {}
CommandLine::~CommandLine() = default;

int CommandLine::parse_and_run(const std::vector<std::string>& arguments) {
  check_verbs(parser_->app, arguments);
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    parser_->app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return parser_->app.exit(error);  // --help
    const std::string what = error.what();
    const auto path = verb_path(parser_->app, arguments);
    fmt::print(stderr, "error: {}: {}. See {} --help\n", path, what.substr(0, what.find('\n')), path);
    return exit_code(InvalidInput("", ""));
  }
  return parser_->chosen();
}

}  // namespace chiliad::cli
