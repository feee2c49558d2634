#include "chiliad/spec/detail/value.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <regex>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/units.h"
#include "chiliad/spec/detail/number.h"
#include "chiliad/spec/detail/source_text.h"
#include "chiliad/spec/detail/sources_rule.h"
#include "chiliad/spec/detail/stages_rule.h"
#include "chiliad/spec/nearest.h"

namespace chiliad::spec::detail {
namespace {

using Kind = YamlNode::Kind;
using Problem = std::optional<std::string>;

// ---- what was found, in words

std::string found(const YamlNode& node) {
  switch (node.kind) {
    case Kind::kNull:
      return "nothing";
    case Kind::kList:
      return "a list";
    case Kind::kMap:
      return "a map";
    case Kind::kScalar:
      break;
  }
  return quote(node.text);
}

std::string wrong(const Rule& rule, const YamlNode& node, const std::string& advice = "") {
  return fmt::format("expected {}, got {}{}{}", describe(rule), found(node), advice.empty() ? "" : ". ",
                     advice);
}

std::string maybe(const std::optional<std::string>& suggestion) {
  return suggestion ? fmt::format("Did you mean {}?", *suggestion) : "";
}

bool matches(const std::string& text, const std::string& pattern) {
  constexpr size_t kMaxMatched = 256;  // std::regex recurses with the text's length
  if (pattern.empty()) return true;
  return text.size() <= kMaxMatched && std::regex_search(text, std::regex(pattern));
}

bool is_text(const YamlNode& node, const std::string& pattern) {
  if (node.kind != Kind::kScalar || node.text.empty()) return false;
  const bool printable = std::all_of(node.text.begin(), node.text.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && c != 0x7F;
  });
  return printable && matches(node.text, pattern);
}

// ---- one reader a rule

template <typename T>
T& field(const Option& option, RunFile& file) {
  const Field target = option.access.field(file);
  CHILIAD_CHECK(std::holds_alternative<T*>(target), "rule and type of option {} differ", option.name);
  return *std::get<T*>(target);
}

Problem read(const TextRule& rule, const Option& option, const YamlNode& node, RunFile& file) {
  if (!is_text(node, rule.pattern)) return wrong(rule, node);
  field<std::string>(option, file) = node.text;
  return std::nullopt;
}

Problem read(const ChoiceRule& rule, const Option& option, const YamlNode& node, RunFile& file) {
  if (node.kind != Kind::kScalar) return wrong(rule, node);
  if (std::find(rule.choices.begin(), rule.choices.end(), node.text) == rule.choices.end()) {
    return wrong(rule, node, maybe(nearest_name(node.text, rule.choices)));
  }
  field<std::string>(option, file) = node.text;
  return std::nullopt;
}

template <typename NumericRule>
auto number_of(const NumericRule& rule, const YamlNode& node, Problem& problem) {
  using Result = decltype(read_number(rule, node.text));
  if (node.kind != Kind::kScalar) {
    problem = wrong(rule, node);
    return Result{};
  }
  const Result value = read_number(rule, node.text);
  if (node.quoted && value) {
    problem = wrong(rule, node, "Remove the quotes");
    return Result{};
  }
  if (!value) problem = wrong(rule, node, maybe(suggest(rule, node.text)));
  return value;
}

Problem read(const WholeRule& rule, const Option& option, const YamlNode& node, RunFile& file) {
  Problem problem;
  const auto value = number_of(rule, node, problem);
  if (!value) return problem;
  const Field target = option.access.field(file);
  if (auto* const* unsigned_field = std::get_if<uint64_t*>(&target)) {
    **unsigned_field = static_cast<uint64_t>(*value);
  } else {
    field<int64_t>(option, file) = *value;
  }
  return std::nullopt;
}

Problem read(const BytesRule& rule, const Option& option, const YamlNode& node, RunFile& file) {
  Problem problem;
  if (const auto value = number_of(rule, node, problem)) field<int64_t>(option, file) = *value;
  return problem;
}

Problem read(const NumberRule& rule, const Option& option, const YamlNode& node, RunFile& file) {
  Problem problem;
  if (const auto value = number_of(rule, node, problem)) field<double>(option, file) = *value;
  return problem;
}

Problem read(const BoolRule& rule, const Option& option, const YamlNode& node, RunFile& file) {
  if (node.kind != Kind::kScalar) return wrong(rule, node);
  const bool known = node.text == "true" || node.text == "false";
  if (known && node.quoted) return wrong(rule, node, "Remove the quotes");
  if (!known) {
    std::string lower = node.text;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    const auto is_any = [&](const std::vector<std::string>& words) {
      return std::find(words.begin(), words.end(), lower) != words.end();
    };
    if (is_any({"yes", "y", "on", "true", "1"})) return wrong(rule, node, "Did you mean true?");
    if (is_any({"no", "n", "off", "false", "0"})) return wrong(rule, node, "Did you mean false?");
    return wrong(rule, node);
  }
  field<bool>(option, file) = node.text == "true";
  return std::nullopt;
}

/// Nothing if the node is a list that may be read.
template <typename ListRule>
Problem refuse_list(const ListRule& rule, const YamlNode& node) {
  if (node.kind == Kind::kScalar) return wrong(rule, node, fmt::format("Did you mean [{}]?", node.text));
  if (node.kind != Kind::kList) return wrong(rule, node);
  if (!node.items.empty() || rule.may_be_empty) return std::nullopt;
  return fmt::format("expected {}, got an empty list", describe(rule));
}

Problem read(const TextListRule& rule, const Option& option, const YamlNode& node, RunFile& file) {
  if (auto problem = refuse_list(rule, node)) return problem;
  std::vector<std::string> texts;
  for (const YamlNode& item : node.items) {
    if (!is_text(item, rule.pattern)) return wrong(rule, item);
    if (std::find(texts.begin(), texts.end(), item.text) != texts.end()) {
      return fmt::format("expected each item once, got {} twice", quote(item.text));
    }
    texts.push_back(item.text);
  }
  field<std::vector<std::string>>(option, file) = std::move(texts);
  return std::nullopt;
}

Problem read(const WholeListRule& rule, const Option& option, const YamlNode& node, RunFile& file) {
  if (auto problem = refuse_list(rule, node)) return problem;
  std::vector<int64_t> values;
  for (const YamlNode& item : node.items) {
    Problem problem;
    const auto value = number_of(rule.item, item, problem);
    if (!value) return problem;
    values.push_back(*value);
  }
  field<std::vector<int64_t>>(option, file) = std::move(values);
  return std::nullopt;
}

Problem read(const SourcesRule& rule, const Option& option, const YamlNode& node, RunFile& file) {
  if (node.kind != Kind::kList) return wrong(rule, node);
  field<std::vector<DataSource>>(option, file) = read_sources(node, option.name);
  return std::nullopt;
}

Problem read(const StagesRule& rule, const Option& option, const YamlNode& node, RunFile& file) {
  if (node.kind != Kind::kList) return wrong(rule, node);
  field<std::vector<ShapeStage>>(option, file) = read_stages(node, option.name);
  return std::nullopt;
}

// ---- rules in words

std::string words_of(const TextRule& rule) {
  return rule.words;
}
std::string words_of(const ChoiceRule& rule) {
  if (rule.choices.size() == 1) return rule.choices.front();
  return fmt::format("one of {}", fmt::join(rule.choices, ", "));
}
std::string words_of(const WholeRule& rule) {
  if (rule.max == INT64_MAX) return fmt::format("a whole number of at least {} that fits 63 bits", rule.min);
  return fmt::format("a whole number in [{}, {}]", rule.min, rule.max);
}
std::string words_of(const BytesRule& rule) {
  return fmt::format("bytes (such as 64MiB) in [{}, {}]", format_bytes(rule.min), format_bytes(rule.max));
}
std::string words_of(const NumberRule& rule) {
  return fmt::format("a number in {}{}, {}{}", rule.without_min ? '(' : '[', rule.min, rule.max,
                     rule.without_max ? ')' : ']');
}
std::string words_of(const BoolRule&) {
  return "true or false";
}
std::string words_of(const TextListRule& rule) {
  return fmt::format("a list of {}", rule.words);
}
std::string words_of(const WholeListRule& rule) {
  return fmt::format("a list of whole numbers in [{}, {}]", rule.item.min, rule.item.max);
}
std::string words_of(const SourcesRule&) {
  return "a list of sources: {name, index, weight, ...}, or of groups: {name, weight, sources}";
}

std::string words_of(const StagesRule&) {
  return "a list of stages: {from, resolution, ...}";
}

// ---- values as YAML

std::string yaml_text(const std::string& text) {
  static const std::regex kPlain("^[A-Za-z][A-Za-z0-9_./-]*$");
  constexpr std::array<std::string_view, 9> kReserved{"null", "true", "false", "yes", "no",
                                                      "on",   "off",  "y",     "n"};
  std::string lower = text;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const bool reserved = std::find(kReserved.begin(), kReserved.end(), lower) != kReserved.end();
  if (!reserved && text.size() < 200 && std::regex_match(text, kPlain)) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string yaml_bytes(int64_t bytes) {
  constexpr std::array<std::pair<int64_t, std::string_view>, 3> kUnits{
      {{kGiB, "GiB"}, {kMiB, "MiB"}, {kKiB, "KiB"}}};
  for (const auto& [size, unit] : kUnits) {
    if (bytes != 0 && bytes % size == 0) return fmt::format("{}{}", bytes / size, unit);
  }
  return std::to_string(bytes);
}

struct FormatVisitor {
  bool is_bytes;
  std::string operator()(const std::string& value) const { return yaml_text(value); }
  std::string operator()(int64_t value) const { return is_bytes ? yaml_bytes(value) : std::to_string(value); }
  std::string operator()(uint64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return fmt::format("{}", value); }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const std::vector<std::string>& value) const { return yaml_list(value); }
  std::string operator()(const std::vector<int64_t>& value) const {
    return fmt::format("[{}]", fmt::join(value, ", "));
  }
  std::string operator()(const std::vector<DataSource>& value) const { return yaml_of(value); }
  std::string operator()(const std::vector<ShapeStage>& value) const { return yaml_of(value); }
};

}  // namespace

std::optional<std::string> assign(const Option& option, const YamlNode& node, RunFile& file) {
  return std::visit([&](const auto& rule) { return read(rule, option, node, file); }, option.rule);
}

std::string describe(const Rule& rule) {
  return std::visit([](const auto& some_rule) { return words_of(some_rule); }, rule);
}

std::string yaml_word(const std::string& text) {
  return yaml_text(text);
}

std::string yaml_list(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ", ") + yaml_text(text);
  return "[" + list + "]";
}

std::string format_value(const Option& option, const RunFile& file) {
  return std::visit(FormatVisitor{std::holds_alternative<BytesRule>(option.rule)}, option.access.value(file));
}

}  // namespace chiliad::spec::detail
