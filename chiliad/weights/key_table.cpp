#include "chiliad/weights/key_table.h"

#include <fmt/format.h>

#include <unordered_map>
#include <utility>

#include "chiliad/base/error.h"

namespace chiliad::weights {
namespace {

constexpr size_t kMaxKeyBytes = 512;  // std::regex recurses by the length; longer keys are nobody's
constexpr size_t kMostNamed = 8;

Shape without_trailing_ones(const Shape& shape) {
  std::vector<int64_t> sizes = shape.sizes();
  while (!sizes.empty() && sizes.back() == 1) sizes.pop_back();
  return Shape(std::move(sizes));
}

void add_part(std::string& text, const char* what, const std::vector<std::string>& names) {
  if (names.empty()) return;
  if (!text.empty()) text += "; ";
  text += fmt::format("{} {}: ", names.size(), what);
  for (size_t i = 0; i < names.size() && i < kMostNamed; ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMostNamed) text += ", ...";
}

}  // namespace

KeyTable::KeyTable(std::vector<KeyRule> rules) {
  for (KeyRule& rule : rules) {
    try {
      rules_.push_back({std::regex(rule.pattern, std::regex::ECMAScript | std::regex::optimize),
                        std::move(rule.replacement), rule.kind});
    } catch (const std::regex_error& error) {
      throw InternalError("key table", fmt::format("expression '{}': {}", rule.pattern, error.what()));
    }
  }
}

std::optional<KeyTable::Key> KeyTable::translate(std::string_view theirs) const {
  Key key{std::string(theirs)};
  if (key.name.size() > kMaxKeyBytes) return key;
  for (const Compiled& rule : rules_) {
    if (!std::regex_search(key.name, rule.expression)) continue;
    if (rule.kind == KeyRule::Kind::kIgnore) return std::nullopt;
    key.name = std::regex_replace(key.name, rule.expression, rule.replacement,
                                  std::regex_constants::format_first_only);
    key.is_alias = key.is_alias || rule.kind == KeyRule::Kind::kAlias;
  }
  return key;
}

std::optional<std::string> KeyTable::ours(std::string_view theirs) const {
  auto key = translate(theirs);
  if (!key) return std::nullopt;
  return std::move(key->name);
}

std::vector<NamedShape> parameters_of(const spec::LayerTable& table) {
  std::vector<NamedShape> parameters;
  for (const auto& layer : table.layers) {
    for (const auto& param : layer.params) parameters.push_back({param.name, param.shape});
  }
  return parameters;
}

std::string KeyMatch::report() const {
  std::string text;
  add_part(text, "missing", missing);
  add_part(text, "unexpected", unexpected);
  add_part(text, "of another shape", wrong_shape);
  add_part(text, "given twice", ambiguous);
  return text;
}

KeyMatch match_keys(const KeyTable& table, std::span<const NamedShape> wanted,
                    std::span<const NamedShape> found) {
  std::unordered_map<std::string, const Shape*> shape_of;
  for (const NamedShape& parameter : wanted) shape_of.emplace(parameter.name, &parameter.shape);

  KeyMatch match;
  std::unordered_map<std::string, const NamedShape*> direct;
  std::unordered_map<std::string, const NamedShape*> aliases;
  for (const NamedShape& tensor : found) {
    const auto key = table.translate(tensor.name);
    if (!key) continue;
    if (!shape_of.contains(key->name)) {
      match.unexpected.push_back(tensor.name);
      continue;
    }
    if (key->is_alias) {
      aliases.emplace(key->name, &tensor);
      continue;
    }
    const auto [entry, is_new] = direct.emplace(key->name, &tensor);
    if (!is_new)
      match.ambiguous.push_back(
          fmt::format("{}: '{}' and '{}'", key->name, entry->second->name, tensor.name));
  }
  for (const NamedShape& parameter : wanted) {
    auto tensor = direct.find(parameter.name);
    if (tensor == direct.end()) {
      tensor = aliases.find(parameter.name);
      if (tensor == aliases.end()) {
        match.missing.push_back(parameter.name);
        continue;
      }
    }
    const NamedShape& theirs = *tensor->second;
    if (without_trailing_ones(theirs.shape) != without_trailing_ones(parameter.shape)) {
      match.wrong_shape.push_back(fmt::format("{}: expected {}, got {} as '{}'", parameter.name,
                                              parameter.shape.to_string(), theirs.shape.to_string(),
                                              theirs.name));
      continue;
    }
    match.key_of.emplace(parameter.name, theirs.name);
  }
  return match;
}

}  // namespace chiliad::weights
