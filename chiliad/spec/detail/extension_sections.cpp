#include "chiliad/spec/detail/extension_sections.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/spec/detail/sections.h"
#include "chiliad/spec/detail/source_text.h"

namespace chiliad::spec::detail {
namespace {

namespace fs = std::filesystem;

const YamlNode* find_entry(const YamlNode& map, std::string_view key) {
  if (map.kind != YamlNode::Kind::kMap) return nullptr;
  const auto found =
      std::find_if(map.items.begin(), map.items.end(), [&](const YamlNode& n) { return n.key == key; });
  return found == map.items.end() ? nullptr : &*found;
}

/// What the run file says for a key that decides which options there are; empty: nothing.
std::string text_of(const YamlNode& root, const ExtensionRequest& request, const std::string& section,
                    const std::string& key) {
  std::string text;
  const YamlNode* map = find_entry(root, section);
  const YamlNode* entry = map == nullptr ? nullptr : find_entry(*map, key);
  if (entry != nullptr && entry->kind == YamlNode::Kind::kScalar) text = entry->text;
  const std::string start = section + "." + key + "=";
  for (const auto& setting : request.overrides)
    if (setting.starts_with(start)) text = setting.substr(start.size());
  return text;
}

std::vector<std::string> libraries_of(const YamlNode& list, const fs::path& folder) {
  if (list.kind != YamlNode::Kind::kList || list.items.empty())
    throw InvalidInput(list.place,
                       "extensions: expected a list of libraries, as in [libmine.so], got "
                       "something else");
  std::vector<std::string> paths;
  for (const YamlNode& item : list.items) {
    if (item.kind != YamlNode::Kind::kScalar || item.text.empty())
      throw InvalidInput(item.place, "extensions: expected the path of a library, got something else");
    const fs::path path = fs::absolute(folder / item.text).lexically_normal();
    std::error_code error;
    if (!fs::is_regular_file(path, error))
      throw InvalidInput(item.place,
                         fmt::format("extensions: expected a library, got {}, where no file is. "
                                     "Build it, or correct the path, which is relative to the run "
                                     "file",
                                     quote(path.string())));
    if (std::find(paths.begin(), paths.end(), path.string()) != paths.end())
      throw InvalidInput(
          item.place, fmt::format("extensions: expected each library once, got {} twice", quote(item.text)));
    paths.push_back(path.string());
  }
  return paths;
}

Rule rule_of(const OwnOption& option) {
  if (std::holds_alternative<int64_t>(option.value))
    return WholeRule{static_cast<int64_t>(option.min), static_cast<int64_t>(option.max)};
  if (std::holds_alternative<double>(option.value)) return NumberRule{option.min, option.max};
  if (std::holds_alternative<bool>(option.value)) return BoolRule{};
  if (option.choices.empty()) return TextRule{};
  return ChoiceRule{option.choices};
}

/// Adds what `use` declares to a section. of: the use inside a run file.
template <typename Use>
void add_options(Section& section, const Use& use, std::shared_ptr<Use> (*of)(const RunFile&)) {
  for (const OwnOption& own : use.what->options) {
    const std::string name = own.name;
    const AnyAccess access(
        [of, name](RunFile& file) {
          return std::visit([](auto& value) -> Field { return &value; }, of(file)->own.values.at(name));
        },
        [of, name](const RunFile& file) {
          return std::visit([](const auto& value) -> Value { return value; }, of(file)->own.values.at(name));
        });
    section.options.push_back(
        {name, access, rule_of(own), OnResume::kFixed, fmt::format("{}: {}", use.name, own.help)});
  }
}

std::shared_ptr<FamilyUse> family_of(const RunFile& file) {
  return file.model.extension;
}
std::shared_ptr<ObjectiveUse> objective_of(const RunFile& file) {
  return file.objective.extension;
}

Section& section_of(std::vector<Section>& sections, std::string_view name) {
  return *std::find_if(sections.begin(), sections.end(), [&](const Section& s) { return s.name == name; });
}

std::vector<std::string>& choices_of(Section& section, std::string_view name) {
  const auto found = std::find_if(section.options.begin(), section.options.end(),
                                  [&](const Option& option) { return option.name == name; });
  return std::get<ChoiceRule>(found->rule).choices;
}

/// The use of the extension called `name`, with the defaults of its options; null where none is.
template <typename Use, typename Extension>
std::shared_ptr<Use> use_named(const std::vector<std::shared_ptr<const Extension>>& all,
                               const std::string& name) {
  for (const auto& one : all) {
    if (one->name != name) continue;
    auto use = std::make_shared<Use>();
    use->what = one;
    use->name = name;
    for (const OwnOption& option : one->options) use->own.values.emplace(option.name, option.value);
    return use;
  }
  return nullptr;
}

/// Lists names as choices of a key. Throws InvalidInput where one is there already.
template <typename Extension>
void add_names(Section& section, std::string_view key,
               const std::vector<std::shared_ptr<const Extension>>& all) {
  auto& choices = choices_of(section, key);
  for (const auto& one : all) {
    if (std::find(choices.begin(), choices.end(), one->name) != choices.end())
      throw InvalidInput("extensions", fmt::format("{}.{}: '{}' is there twice. Rename it in the extension",
                                                   section.name, key, one->name));
    choices.push_back(one->name);
  }
}

void check_option_names(const Section& section, const std::vector<OwnOption>& options,
                        const std::string& owner) {
  for (const OwnOption& option : options) {
    if (find_option(section, option.name) == nullptr) continue;
    throw InvalidInput("extensions", fmt::format("{} declares the option '{}', which section {} has already. "
                                                 "Rename it in the extension",
                                                 owner, option.name, section.name));
  }
}

}  // namespace

std::vector<Section> sections_of(const RunFile& file) {
  std::vector<Section> all = sections();
  if (file.model.extension) add_options(section_of(all, "model"), *file.model.extension, family_of);
  if (file.objective.extension)
    add_options(section_of(all, "objective"), *file.objective.extension, objective_of);
  return all;
}

std::vector<Section> use_extensions(const YamlNode& root, ExtensionRequest request, RunFile& file) {
  const YamlNode* list = find_entry(root, kExtensions);
  if (list == nullptr || list->kind == YamlNode::Kind::kNull) return sections();
  file.extensions = request.libraries = libraries_of(*list, request.folder);
  const Extensions found = find_extensions(request);
  file.model.extension = use_named<FamilyUse>(found.families, text_of(root, request, "model", "family"));
  file.objective.extension =
      use_named<ObjectiveUse>(found.objectives, text_of(root, request, "objective", "kind"));
  if (file.model.extension) {
    file.model.family = file.model.extension->what->base;
    check_option_names(*find_section("model"), file.model.extension->what->options,
                       file.model.extension->name);
  }
  if (file.objective.extension) {
    file.objective.kind = file.objective.extension->what->base;
    check_option_names(*find_section("objective"), file.objective.extension->what->options,
                       file.objective.extension->name);
  }
  std::vector<Section> all = sections_of(file);
  add_names(section_of(all, "model"), "family", found.families);
  add_names(section_of(all, "objective"), "kind", found.objectives);
  return all;
}

bool same_extensions(const RunFile& a, const RunFile& b) {
  const auto name = [](const auto& use) { return use ? use->name : std::string(); };
  return name(a.model.extension) == name(b.model.extension) &&
         name(a.objective.extension) == name(b.objective.extension);
}

}  // namespace chiliad::spec::detail
