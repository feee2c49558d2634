#include "chiliad/spec/run_file.h"

#include <fmt/core.h>

#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/units.h"
#include "chiliad/spec/detail/cross_checks.h"
#include "chiliad/spec/detail/extension_sections.h"
#include "chiliad/spec/detail/sections.h"
#include "chiliad/spec/detail/source_text.h"
#include "chiliad/spec/detail/value.h"
#include "chiliad/spec/detail/yaml_tree.h"
#include "chiliad/spec/nearest.h"

namespace chiliad::spec {
namespace {

using detail::Option;
using detail::Section;
using detail::YamlNode;

constexpr int64_t kMaxFileBytes = kMiB;
constexpr std::string_view kVersion = "1";

// Fills a RunFile from a tree and from overrides, and remembers where each key was set.
class Reader {
 public:
  explicit Reader(std::string name) : name_(std::move(name)), sections_(detail::sections()) {}

  /// First of all: options depend on what extensions bring.
  void use_extensions(const YamlNode& root, const ExtensionRequest& request) {
    sections_ = detail::use_extensions(root, request, file_);
  }

  void read_tree(const YamlNode& root) {
    if (root.kind == YamlNode::Kind::kNull) {
      throw InvalidInput(name_,
                         "the file is empty: expected version: 1 and data.index at least, got nothing");
    }
    if (root.kind != YamlNode::Kind::kMap)
      throw InvalidInput(root.place, "expected sections, got other content");
    check_version(root);
    for (const YamlNode& entry : root.items) {
      if (entry.key != "version" && entry.key != detail::kExtensions) read_section(entry);
    }
  }

  void read_override(const std::string& text) {
    const size_t equals = text.find('=');
    const std::string key = text.substr(0, equals);
    const std::string place =
        fmt::format("--set {}", detail::quote(key).substr(1, detail::quote(key).size() - 2));
    const size_t dot = key.find('.');
    if (equals == std::string::npos || dot == std::string::npos) {
      throw InvalidInput("--set", fmt::format("expected section.key=value, got {}", detail::quote(text)));
    }
    if (!set_by_override_.insert(key).second) {
      throw InvalidInput(place, "the key is set twice on the command line. Remove one");
    }
    YamlNode node = override_value(text.substr(equals + 1), place);
    node.place = place;
    const Section& section = section_named(key.substr(0, dot), place);
    read_option(section, key.substr(dot + 1), node, place, "");
  }

  [[nodiscard]] RunFile finish(const std::string& stem) {
    for (const Section& section : sections_) {
      for (const Option& option : section.options) check_required(section, option);
    }
    if (file_.run.name.empty()) file_.run.name = stem;
    if (file_.run.dir.empty()) file_.run.dir = "runs/" + stem;
    if (const auto conflict = detail::find_conflict(file_)) refuse_conflict(*conflict);
    return std::move(file_);
  }

 private:
  [[noreturn]] void refuse_conflict(const detail::Conflict& conflict) const {
    if (set_by_override_.count(conflict.key) > 0)
      throw InvalidInput("--set " + conflict.key, conflict.message);
    const auto place = places_.find(conflict.key);
    throw InvalidInput(place == places_.end() ? name_ : place->second,
                       conflict.key + ": " + conflict.message);
  }

  void check_version(const YamlNode& root) const {
    for (const YamlNode& entry : root.items) {
      if (entry.key != "version") continue;
      if (entry.kind == YamlNode::Kind::kScalar && entry.text == kVersion && !entry.quoted) return;
      throw InvalidInput(entry.place,
                         fmt::format("version: expected 1, got {}. This program reads version 1 only",
                                     detail::quote(entry.text)));
    }
    throw InvalidInput(name_, "version: expected 1, got nothing. Add the line \"version: 1\"");
  }

  [[nodiscard]] const Section& section_named(const std::string& name, const std::string& place) const {
    for (const Section& section : sections_)
      if (section.name == name) return section;
    std::vector<std::string> known = detail::section_names();
    known.emplace_back(detail::kExtensions);
    std::string advice = did_you_mean(name, known);
    if (const auto key = key_in_a_section(name)) advice = fmt::format("Did you mean {}?", *key);
    throw InvalidInput(place, fmt::format("unknown section {}. {}", detail::quote(name), advice));
  }

  // "section.key" for a key that was written without its section.
  [[nodiscard]] std::optional<std::string> key_in_a_section(const std::string& key) const {
    for (const Section& section : sections_) {
      const std::string full = section.name + "." + key;
      if (detail::find_option(section, key) != nullptr) return full;
      if (const auto now = detail::renamed_key(full)) return now;
    }
    return std::nullopt;
  }

  void read_section(const YamlNode& node) {
    const Section& section = section_named(node.key, node.key_place);
    if (node.kind == YamlNode::Kind::kNull) return;  // all its keys are commented out
    if (node.kind != YamlNode::Kind::kMap) {
      throw InvalidInput(node.place,
                         fmt::format("{}: expected keys below it, got a value or a list", section.name));
    }
    for (const YamlNode& entry : node.items) {
      read_option(section, entry.key, entry, entry.key_place, section.name + "." + entry.key + ": ");
    }
  }

  void read_option(const Section& section, const std::string& key, const YamlNode& node,
                   const std::string& key_place, const std::string& prefix) {
    const Option* option = detail::find_option(section, key);
    if (option == nullptr) refuse_key(section, key, key_place);
    if (const auto problem = detail::assign(*option, node, file_))
      throw InvalidInput(node.place, prefix + *problem);
    places_[section.name + "." + key] = node.place;
  }

  [[noreturn]] void refuse_key(const Section& section, const std::string& key,
                               const std::string& place) const {
    std::string advice = did_you_mean(key, detail::option_names(section));
    if (const auto other = key_in_a_section(key)) advice = fmt::format("Did you mean {}?", *other);
    if (const auto now = detail::renamed_key(section.name + "." + key))
      advice = fmt::format("It is called {}.", *now);
    throw InvalidInput(
        place, fmt::format("unknown key {} in section {}. {}", detail::quote(key), section.name, advice));
  }

  static YamlNode override_value(const std::string& text, const std::string& place) {
    const char first = text.empty() ? ' ' : text.front();
    if (first == '[' || first == '"' || first == '\'') {
      const char last = first == '[' ? ']' : first;
      if (text.size() > 1 && text.back() == last) return detail::parse_yaml(text, place);
      throw InvalidInput(place, fmt::format("expected a closing {}, got {}", last, detail::quote(text)));
    }
    detail::check_source_text(text, place);
    YamlNode node;
    node.kind = text.empty() ? YamlNode::Kind::kNull : YamlNode::Kind::kScalar;
    node.text = text;
    return node;
  }

  void check_required(const Section& section, const Option& option) const {
    const auto* rule = std::get_if<detail::TextRule>(&option.rule);
    const std::string key = section.name + "." + option.name;
    if (rule == nullptr || !rule->required || places_.count(key) > 0) return;
    if (!rule->unless.empty() && places_.count(section.name + "." + rule->unless) > 0) return;
    throw InvalidInput(name_, fmt::format("{}: expected {}, got nothing. Add it, or pass --set {}=...", key,
                                          option.help, key));
  }

  std::string name_;
  std::vector<Section> sections_;
  RunFile file_;
  std::map<std::string, std::string> places_;
  std::set<std::string> set_by_override_;
};

std::string read_source(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    throw InvalidInput(path.string(), "expected a run file, got no such file");
  }
  if (std::filesystem::is_directory(path, error)) {
    throw InvalidInput(path.string(), "expected a run file, got a folder");
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw Unavailable(path.string(), "the file cannot be opened for reading");
  std::string text(static_cast<size_t>(kMaxFileBytes) + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad()) throw Unavailable(path.string(), "the file cannot be read");
  text.resize(static_cast<size_t>(stream.gcount()));
  return text;
}

}  // namespace

RunFile read_run_file(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  return parse_run_file(read_source(path), path.string(), path.stem().string(), overrides,
                        path.parent_path());
}

RunFile parse_run_file(std::string_view text, const std::string& name, const std::string& stem,
                       const std::vector<std::string>& overrides, const std::filesystem::path& folder) {
  if (text.size() > static_cast<size_t>(kMaxFileBytes)) {
    throw InvalidInput(
        name, fmt::format("expected a run file of at most {}, got more", format_bytes(kMaxFileBytes)));
  }
  Reader reader(name);
  const YamlNode root = detail::parse_yaml(text, name);
  reader.use_extensions(root, {{}, text, name, folder, overrides});
  reader.read_tree(root);
  for (const std::string& override_text : overrides) reader.read_override(override_text);
  return reader.finish(stem);
}

std::string to_yaml(const RunFile& file) {
  std::string text = fmt::format("version: {}\n", kVersion);
  if (!file.extensions.empty()) text += fmt::format("\nextensions: {}\n", detail::yaml_list(file.extensions));
  for (const Section& section : detail::sections_of(file)) {
    text += fmt::format("\n{}:\n", section.name);
    for (const Option& option : section.options) {
      const std::string value = detail::format_value(option, file);
      if (value != "\"\"") text += fmt::format("  {}: {}\n", option.name, value);
    }
  }
  return text;
}

std::vector<Difference> compare(const RunFile& old_file, const RunFile& new_file) {
  std::vector<Difference> differences;
  const bool same = detail::same_extensions(old_file, new_file);  // else their names differ
  for (const Section& section : same ? detail::sections_of(new_file) : detail::sections()) {
    for (const Option& option : section.options) {
      if (option.access.value(old_file) == option.access.value(new_file)) continue;
      differences.push_back({section.name + "." + option.name, detail::format_value(option, old_file),
                             detail::format_value(option, new_file),
                             option.on_resume == detail::OnResume::kFree});
    }
  }
  return differences;
}

Digest content_digest(const RunFile& file) {
  Hasher hasher;
  for (const Section& section : detail::sections()) {
    for (const Option& option : section.options) {
      if (option.on_resume != detail::OnResume::kContent) continue;
      hasher.add(section.name).add(option.name).add(detail::format_value(option, file));
    }
  }
  return hasher.digest();
}

}  // namespace chiliad::spec
