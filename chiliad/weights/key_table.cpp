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
                        std::move(rule.replacement), rule.kind, std::move(rule.parts)});
    } catch (const std::regex_error& error) {
      throw InternalError("key table", fmt::format("expression '{}': {}", rule.pattern, error.what()));
    }
  }
}

std::vector<KeyTable::Key> KeyTable::translate_all(std::string_view theirs) const {
  std::vector<Key> keys{{std::string(theirs)}};
  if (theirs.size() > kMaxKeyBytes) return keys;
  for (const Compiled& rule : rules_) {
    std::vector<Key> next;
    for (Key& key : keys) {
      if (!std::regex_search(key.name, rule.expression)) {
        next.push_back(std::move(key));
        continue;
      }
      if (rule.kind == KeyRule::Kind::kIgnore) continue;
      const bool is_split = rule.kind == KeyRule::Kind::kSplit;
      const auto replacements = is_split ? rule.parts : std::vector<std::string>{rule.replacement};
      for (size_t part = 0; part < replacements.size(); ++part) {
        Key& made = next.emplace_back(key);
        made.name = std::regex_replace(key.name, rule.expression, replacements[part],
                                       std::regex_constants::format_first_only);
        made.is_alias = key.is_alias || rule.kind == KeyRule::Kind::kAlias;
        if (!is_split) continue;
        made.part = static_cast<int64_t>(part);
        made.num_parts = static_cast<int64_t>(replacements.size());
      }
    }
    keys = std::move(next);
  }
  return keys;
}

std::optional<KeyTable::Key> KeyTable::translate(std::string_view theirs) const {
  auto keys = translate_all(theirs);
  if (keys.empty()) return std::nullopt;
  return std::move(keys.front());
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

namespace {

/// A tensor of the file as one of our parameters.
struct Candidate {
  const NamedShape* tensor;
  KeyPart part;
};

/// The shape of one part of the tensor; nothing where its rows cannot be split so.
std::optional<Shape> part_shape(const Candidate& candidate) {
  std::vector<int64_t> sizes = candidate.tensor->shape.sizes();
  if (candidate.part.count == 1) return Shape(std::move(sizes));
  if (sizes.empty() || sizes[0] % candidate.part.count != 0) return std::nullopt;
  sizes[0] /= candidate.part.count;
  return Shape(std::move(sizes));
}

}  // namespace

KeyMatch match_keys(const KeyTable& table, std::span<const NamedShape> wanted,
                    std::span<const NamedShape> found) {
  std::unordered_map<std::string, const Shape*> shape_of;
  for (const NamedShape& parameter : wanted) shape_of.emplace(parameter.name, &parameter.shape);

  KeyMatch match;
  std::unordered_map<std::string, Candidate> direct;
  std::unordered_map<std::string, Candidate> aliases;
  for (const NamedShape& tensor : found) {
    for (const auto& key : table.translate_all(tensor.name)) {
      if (!shape_of.contains(key.name)) {
        match.unexpected.push_back(tensor.name);
        break;
      }
      const Candidate candidate{&tensor, {key.part, key.num_parts}};
      if (key.is_alias) {
        aliases.emplace(key.name, candidate);
        continue;
      }
      const auto [entry, is_new] = direct.emplace(key.name, candidate);
      if (!is_new)
        match.ambiguous.push_back(
            fmt::format("{}: '{}' and '{}'", key.name, entry->second.tensor->name, tensor.name));
    }
  }
  for (const NamedShape& parameter : wanted) {
    auto entry = direct.find(parameter.name);
    if (entry == direct.end()) {
      entry = aliases.find(parameter.name);
      if (entry == aliases.end()) {
        match.missing.push_back(parameter.name);
        continue;
      }
    }
    const auto& [tensor, part] = entry->second;
    const auto shape = part_shape(entry->second);
    if (!shape || without_trailing_ones(*shape) != without_trailing_ones(parameter.shape)) {
      const std::string parts = part.count == 1 ? "" : fmt::format("{} parts of ", part.count);
      match.wrong_shape.push_back(fmt::format("{}: expected {}, got {}{} as '{}'", parameter.name,
                                              parameter.shape.to_string(), parts, tensor->shape.to_string(),
                                              tensor->name));
      continue;
    }
    match.key_of.emplace(parameter.name, tensor->name);
    if (part.count > 1) match.part_of.emplace(parameter.name, part);
  }
  return match;
}

}  // namespace chiliad::weights
