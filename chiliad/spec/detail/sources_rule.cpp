#include "chiliad/spec/detail/sources_rule.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <regex>
#include <set>

#include "chiliad/base/error.h"
#include "chiliad/spec/detail/number.h"
#include "chiliad/spec/detail/option.h"
#include "chiliad/spec/detail/source_text.h"
#include "chiliad/spec/detail/value.h"
#include "chiliad/spec/nearest.h"

namespace chiliad::spec::detail {
namespace {

using Kind = YamlNode::Kind;

constexpr std::array<const char*, 8> kKeys{"name",   "index",     "weight",  "ramp",
                                           "epochs", "languages", "profile", "sources"};
const NumberRule kWeight{0.0, 1e9, false, false};
const WholeRule kWhole{0, INT64_MAX};

std::string shown(const YamlNode& node) {
  if (node.kind == Kind::kScalar) return quote(node.text);
  if (node.kind == Kind::kList) return "a list";
  return node.kind == Kind::kMap ? "a map" : "nothing";
}

/// Reads one tree; names the option in what it refuses.
class SourcesReader {
 public:
  explicit SourcesReader(std::string option) : option_(std::move(option)) {}

  std::vector<DataSource> list(const YamlNode& node) {
    if (node.kind != Kind::kList) refuse(node, "a list of sources");
    std::vector<DataSource> sources;
    for (const YamlNode& item : node.items) sources.push_back(source(item));
    return sources;
  }

 private:
  [[noreturn]] void refuse(const YamlNode& node, const std::string& expected,
                           const std::string& advice = "") const {
    throw InvalidInput(node.place, fmt::format("data.{}: expected {}, got {}{}{}", option_, expected,
                                               shown(node), advice.empty() ? "" : ". ", advice));
  }

  DataSource source(const YamlNode& node) {
    if (node.kind != Kind::kMap)
      refuse(node, "a source such as {name: photos, index: photos.index, weight: 0.7}");
    DataSource source;
    for (const YamlNode& entry : node.items) field(entry, source);
    if (source.name.empty()) refuse(node, "a source with a name", "Add `name: ...`");
    if (!names_.insert(source.name).second)
      refuse_source(node, source, "expected each name once, got it twice");
    const bool is_group = !source.sources.empty();
    if (is_group == !source.index.empty())
      refuse_source(node, source, "expected either an index (a source) or sources (a group)");
    if (is_group && (source.epochs > 0 || !source.languages.empty() || !source.profile.empty()))
      refuse_source(node, source,
                    "expected epochs, languages and a profile of sources alone, got them of a group");
    return source;
  }

  [[noreturn]] void refuse_source(const YamlNode& node, const DataSource& source,
                                  const std::string& what) const {
    throw InvalidInput(node.place, fmt::format("data.{}: {}: {}", option_, source.name, what));
  }

  void field(const YamlNode& entry, DataSource& source) {
    if (entry.key == "name") {
      source.name =
          text(entry, "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$", "a name of letters, digits, '.', '-' and '_'");
    } else if (entry.key == "index") {
      source.index = text(entry, "", "a folder made by `chiliad data index`");
    } else if (entry.key == "weight") {
      source.weight = weight(entry);
    } else if (entry.key == "ramp") {
      if (entry.kind != Kind::kScalar || entry.quoted || (entry.text != "true" && entry.text != "false"))
        refuse(entry, "true or false");
      source.ramp = entry.text == "true";
    } else if (entry.key == "epochs") {
      source.epochs = whole(entry, "a whole number of epochs (0: for ever)");
    } else if (entry.key == "languages") {
      if (entry.kind != Kind::kList || entry.items.empty()) refuse(entry, "a list of language tags");
      for (const YamlNode& item : entry.items)
        source.languages.push_back(text(item, "^[A-Za-z][A-Za-z0-9_-]{0,31}$", "a language tag such as en"));
    } else if (entry.key == "profile") {
      source.profile = text(entry, "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$", "a profile of ~/.aws/credentials");
    } else if (entry.key == "sources") {
      source.sources = list(entry);
    } else {
      const std::vector<std::string> keys(kKeys.begin(), kKeys.end());
      throw InvalidInput(entry.key_place, fmt::format("data.{}: unknown key {}. {}", option_,
                                                      quote(entry.key), did_you_mean(entry.key, keys)));
    }
  }

  std::string text(const YamlNode& node, const std::string& pattern, const std::string& words) const {
    const bool fits = node.kind == Kind::kScalar && !node.text.empty() && node.text.size() <= 256 &&
                      (pattern.empty() || std::regex_match(node.text, std::regex(pattern)));
    if (!fits) refuse(node, words);
    return node.text;
  }

  int64_t whole(const YamlNode& node, const std::string& words) const {
    const auto value =
        node.kind == Kind::kScalar && !node.quoted ? read_number(kWhole, node.text) : std::nullopt;
    if (!value) refuse(node, words);
    return *value;
  }

  double number(const YamlNode& node) const {
    const auto value =
        node.kind == Kind::kScalar && !node.quoted ? read_number(kWeight, node.text) : std::nullopt;
    if (!value) refuse(node, "a weight in [0, 1e9], or a list of [step, weight]");
    return *value;
  }

  std::vector<WeightPoint> weight(const YamlNode& node) const {
    if (node.kind != Kind::kList) return {{0, number(node)}};
    std::vector<WeightPoint> points;
    for (const YamlNode& item : node.items) {
      if (item.kind != Kind::kList || item.items.size() != 2) refuse(item, "a pair [step, weight]");
      points.push_back({whole(item.items[0], "a step"), number(item.items[1])});
      const bool rises =
          points.size() == 1 ? points.front().step == 0 : points.back().step > points[points.size() - 2].step;
      if (!rises) refuse(item.items[0], "steps that rise from 0");
    }
    if (points.empty()) refuse(node, "at least one [step, weight]");
    return points;
  }

  std::string option_;
  std::set<std::string> names_;
};

std::string yaml_of(const DataSource& source) {
  std::string text = "{name: " + yaml_word(source.name);
  if (!source.index.empty()) text += ", index: " + yaml_word(source.index);
  if (source.weight.size() == 1 && source.weight.front().step == 0) {
    text += fmt::format(", weight: {}", source.weight.front().weight);
  } else {
    std::string points;
    for (const WeightPoint& point : source.weight)
      points += fmt::format("{}[{}, {}]", points.empty() ? "" : ", ", point.step, point.weight);
    text += fmt::format(", weight: [{}]", points);
  }
  if (source.ramp) text += ", ramp: true";
  if (source.epochs != 0) text += fmt::format(", epochs: {}", source.epochs);
  if (!source.languages.empty()) text += ", languages: " + yaml_list(source.languages);
  if (!source.profile.empty()) text += ", profile: " + yaml_word(source.profile);
  if (!source.sources.empty()) text += ", sources: " + detail::yaml_of(source.sources);
  return text + "}";
}

/// The first source, a group or in one, that `is_it` is true for.
template <typename IsIt>
const DataSource* find_source(const std::vector<DataSource>& sources, const IsIt& is_it) {
  for (const DataSource& source : sources) {
    if (is_it(source)) return &source;
    if (const DataSource* found = find_source(source.sources, is_it)) return found;
  }
  return nullptr;
}

}  // namespace

std::vector<DataSource> read_sources(const YamlNode& node, const std::string& option) {
  return SourcesReader(option).list(node);
}

std::string yaml_of(const std::vector<DataSource>& sources) {
  std::string list;
  for (const DataSource& source : sources) list += (list.empty() ? "" : ", ") + yaml_of(source);
  return "[" + list + "]";
}

std::string sources_schema() {
  return R"({"type": "array", "items": {"type": "object", "additionalProperties": false, "required": ["name"],
    "properties": {
      "name": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"},
      "index": {"type": "string", "minLength": 1},
      "weight": {"oneOf": [{"type": "number", "minimum": 0}, {"type": "array", "minItems": 1,
        "items": {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "number", "minimum": 0}}}]},
      "ramp": {"type": "boolean"},
      "epochs": {"type": "integer", "minimum": 0},
      "languages": {"type": "array", "items": {"type": "string"}, "minItems": 1},
      "profile": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"},
      "sources": {"type": "array", "items": {"type": "object"}}}}})";
}

std::optional<Conflict> check_sources(const DataOptions& data) {
  const bool has_sources = !data.sources.empty();
  if (has_sources != data.index.empty()) {
    if (has_sources)
      return Conflict{"data.sources",
                      fmt::format("expected nothing beside data.index ({}), got sources. Remove one of them",
                                  data.index)};
    return Conflict{"data.index",
                    "expected a folder made by `chiliad data index`, or data.sources, got neither. Add one"};
  }
  const bool by_weights = data.mixing == "weights";
  if (!has_sources && !by_weights)
    return Conflict{"data.mixing",
                    fmt::format("belongs to data.sources: expected weights, got {}. Remove it", data.mixing)};
  if (!by_weights) {
    const auto* weighted = find_source(data.sources, [](const DataSource& source) {
      return source.weight != DataSource{}.weight || source.ramp;
    });
    if (weighted != nullptr)
      return Conflict{
          "data.sources",
          fmt::format("{}: expected no weight where data.mixing is {}, got one. Remove one of them",
                      weighted->name, data.mixing)};
  }
  if (data.mixing != "concatenate") return std::nullopt;
  const auto* own = find_source(
      data.sources, [](const DataSource& source) { return source.epochs > 0 || !source.languages.empty(); });
  if (own == nullptr) return std::nullopt;
  return Conflict{
      "data.sources",
      fmt::format(
          "{}: expected no epochs and languages where data.mixing is concatenate, got some. Remove them",
          own->name)};
}

}  // namespace chiliad::spec::detail
