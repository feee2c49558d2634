// The reference page and the JSON Schema, both from the option tables.
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>

#include "chiliad/base/json_text.h"
#include "chiliad/spec/detail/sections.h"
#include "chiliad/spec/detail/sources_rule.h"
#include "chiliad/spec/detail/value.h"
#include "chiliad/spec/run_file.h"

namespace chiliad::spec {
namespace {

using detail::Option;
using detail::Section;
using Json = nlohmann::ordered_json;

bool is_required(const Option& option) {
  const auto* rule = std::get_if<detail::TextRule>(&option.rule);
  return rule != nullptr && rule->required;
}

// ---- Markdown

std::string default_cell(const Option& option) {
  if (is_required(option)) return "required";
  if (!option.default_note.empty()) return option.default_note;
  return "`" + detail::format_value(option, RunFile{}) + "`";
}

std::string escape_cell(std::string text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '|' || text[i] == '<') text.insert(i++, "\\");
  }
  return text;
}

std::string row(const Option& option) {
  const char* on_resume = option.on_resume == detail::OnResume::kFree ? "free" : "fixed";
  return fmt::format("| `{}` | {} | {} | {} | {} |\n", option.name,
                     escape_cell(detail::describe(option.rule)), escape_cell(default_cell(option)), on_resume,
                     escape_cell(option.help));
}

// ---- JSON Schema

struct SchemaVisitor {
  Json operator()(const detail::TextRule& rule) const {
    Json schema{{"type", "string"}, {"minLength", 1}};
    if (!rule.pattern.empty()) schema["pattern"] = rule.pattern;
    return schema;
  }
  Json operator()(const detail::ChoiceRule& rule) const { return {{"enum", rule.choices}}; }
  Json operator()(const detail::WholeRule& rule) const {
    return {{"type", "integer"}, {"minimum", rule.min}, {"maximum", rule.max}};
  }
  Json operator()(const detail::BytesRule& rule) const {
    const Json with_unit{{"type", "string"}, {"pattern", "^[0-9]+(\\.[0-9]+)? ?([KMGT]i?)?B$"}};
    return {{"oneOf", Json::array({(*this)(detail::WholeRule{rule.min, rule.max}), with_unit})}};
  }
  Json operator()(const detail::NumberRule& rule) const {
    return {{"type", "number"},
            {rule.without_min ? "exclusiveMinimum" : "minimum", rule.min},
            {rule.without_max ? "exclusiveMaximum" : "maximum", rule.max}};
  }
  Json operator()(const detail::BoolRule&) const { return {{"type", "boolean"}}; }
  Json operator()(const detail::TextListRule& rule) const {
    Json item{{"type", "string"}, {"minLength", 1}};
    if (!rule.pattern.empty()) item["pattern"] = rule.pattern;
    return {
        {"type", "array"}, {"items", item}, {"minItems", rule.may_be_empty ? 0 : 1}, {"uniqueItems", true}};
  }
  Json operator()(const detail::SourcesRule&) const { return parse_json<Json>(detail::sources_schema()); }
  Json operator()(const detail::StagesRule&) const {
    Json properties{{"from", {{"type", "integer"}, {"minimum", 1}}}};
    const auto& section = *detail::find_section("data");
    for (const char* key :
         {"buckets", "resolution", "bucket_step", "bucket_min", "bucket_max", "micro_batch_items"})
      properties[key] = std::visit(*this, detail::find_option(section, key)->rule);
    return {{"type", "array"},
            {"items",
             {{"type", "object"},
              {"additionalProperties", false},
              {"required", {"from"}},
              {"properties", properties}}}};
  }
  Json operator()(const detail::WholeListRule& rule) const {
    return {{"type", "array"}, {"items", (*this)(rule.item)}, {"minItems", rule.may_be_empty ? 0 : 1}};
  }
};

struct DefaultVisitor {
  template <typename T>
  Json operator()(const T& value) const {
    return value;
  }
  Json operator()(const std::vector<DataSource>&) const { return Json::array(); }
  Json operator()(const std::vector<ShapeStage>&) const { return Json::array(); }
};

Json option_schema(const Option& option) {
  Json schema = std::visit(SchemaVisitor{}, option.rule);
  schema["description"] = option.help;
  if (!is_required(option) && option.default_note.empty()) {
    schema["default"] = std::visit(DefaultVisitor{}, option.access.value(RunFile{}));
  }
  return schema;
}

Json section_schema(const Section& section) {
  Json properties = Json::object();
  Json required = Json::array();
  Json one_of;
  for (const Option& option : section.options) {
    properties[option.name] = option_schema(option);
    if (!is_required(option)) continue;
    const std::string& other = std::get<detail::TextRule>(option.rule).unless;
    if (other.empty()) {
      required.push_back(option.name);
    } else {
      one_of =
          Json::array({{{"required", Json::array({option.name})}}, {{"required", Json::array({other})}}});
    }
  }
  Json schema{{"type", "object"}, {"description", section.help}, {"additionalProperties", false}};
  schema["properties"] = properties;
  if (!required.empty()) schema["required"] = required;
  if (!one_of.is_null()) schema["oneOf"] = one_of;
  return schema;
}

}  // namespace

std::string reference_page() {
  std::string page =
      "# Run file\n\n"
      "One YAML document that begins with `version: 1`. Keys marked *free* may differ when a run is resumed; "
      "another\n"
      "value of a *fixed* key needs a new run. `--set section.key=value` overrides the file.\n\n"
      "`extensions: [libmine.so]` lists libraries, relative to the file, whose families and objectives have "
      "options of\ntheir own in sections model and objective (docs/extending.md).\n";
  for (const Section& section : detail::sections()) {
    page += fmt::format("\n## {}\n\n{}\n\n", section.name, section.help);
    page += "| key | value | default | on resume | meaning |\n|---|---|---|---|---|\n";
    for (const Option& option : section.options) page += row(option);
  }
  return page;
}

std::string json_schema() {
  Json properties{{"version", {{"const", 1}}},
                  {"extensions",
                   {{"type", "array"},
                    {"items", {{"type", "string"}, {"minLength", 1}}},
                    {"description", "Libraries, relative to the file (docs/extending.md)"}}}};
  Json required = Json::array({"version"});
  for (const Section& section : detail::sections()) {
    properties[section.name] = section_schema(section);
    if (std::any_of(section.options.begin(), section.options.end(), is_required))
      required.push_back(section.name);
  }
  const Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                    {"title", "Chiliad run file"},
                    {"type", "object"},
                    {"additionalProperties", false},
                    {"required", required},
                    {"properties", properties}};
  return json_text(schema, 2) + "\n";
}

}  // namespace chiliad::spec
