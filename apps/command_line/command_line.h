#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace chiliad::cli {

/// What an option can be read into. The parser is a library whose templates cost every file that sees them
/// ten seconds: they are instantiated for these types, in one file.
template <typename T>
concept OptionValue = std::same_as<T, std::string> || std::same_as<T, std::filesystem::path> ||
    std::same_as<T, int> || std::same_as<T, int64_t> || std::same_as<T, uint64_t> ||
    std::same_as<T, double> || std::same_as<T, std::optional<std::string>> ||
    std::same_as<T, std::optional<int>> || std::same_as<T, std::optional<int64_t>> ||
    std::same_as<T, std::optional<double>> || std::same_as<T, std::vector<std::string>> ||
    std::same_as<T, std::vector<int>> || std::same_as<T, std::vector<int64_t>>;

/// Says more about an option that was added; lives as long as the command line. What is checked is checked
/// before the verb runs.
class Option {
 public:
  Option& required();
  /// Its value without the option stands in the help.
  Option& show_default();
  /// Numbers from `least` to `most`, both included.
  template <typename N>
  Option& within(N least, N most) {
    if constexpr (std::is_floating_point_v<N>) return within_numbers(least, most);
    return within_integers(static_cast<int64_t>(least), static_cast<int64_t>(most));
  }
  /// Numbers above 0.
  Option& positive();
  Option& not_negative();
  Option& one_of(const std::vector<std::string>& values);
  /// Numbers of bytes: 5GB, 300KiB.
  Option& bytes();
  /// Given several times, with one value each.
  Option& repeats();
  /// Several values in one, with commas between them.
  Option& comma_list();
  /// Wrong use without `other`.
  Option& needs(const Option& other);

 private:
  friend class Verb;
  explicit Option(CLI::Option* option) : option_(option) {}
  Option& within_integers(int64_t least, int64_t most);
  Option& within_numbers(double least, double most);
  CLI::Option* option_;
};

/// A verb with its options, help and example, or a group of verbs; lives as long as the command line.
class Verb {
 public:
  /// A verb below this one; one of those must be given then.
  Verb add(const std::string& name, const std::string& help);
  /// `name`: --long, or a word in capitals for a positional argument. `value` keeps what it holds where the
  /// option is not given, and outlives the command line.
  template <OptionValue T>
  Option option(const std::string& name, T& value, const std::string& help = "");
  Option flag(const std::string& name, bool& value, const std::string& help = "");
  /// Stands below the options in the help: an example.
  void footer(const std::string& text);
  /// What the verb does; returns the exit code.
  void run(std::function<int()> action);

 protected:
  Verb(CLI::App* app, std::function<int()>* chosen) : app_(app), chosen_(chosen) {}
  CLI::App* app_;
  std::function<int()>* chosen_;
};

/// A program's verbs.
class CommandLine : public Verb {
 public:
  CommandLine(const std::string& program, const std::string& help);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// Runs the verb that the arguments name; returns its exit code: 0 for --help, 2 where an option is wrong,
  /// after a line on stderr. Throws InvalidInput for unknown verbs, with the nearest one, and what verbs
  /// throw.
  int parse_and_run(const std::vector<std::string>& arguments);

 private:
  struct Parser;
  explicit CommandLine(std::unique_ptr<Parser> parser);
  std::unique_ptr<Parser> parser_;
};

}  // namespace chiliad::cli
