#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "chiliad/spec/run_file.h"

namespace chiliad::spec::detail {

/// Where an option's value lives, and the value itself.
using Field = std::variant<std::string*, int64_t*, uint64_t*, double*, bool*, std::vector<std::string>*,
                           std::vector<int64_t>*, std::vector<DataSource>*, std::vector<ShapeStage>*>;
using Value = std::variant<std::string, int64_t, uint64_t, double, bool, std::vector<std::string>,
                           std::vector<int64_t>, std::vector<DataSource>, std::vector<ShapeStage>>;

struct Access {
  Field (*field)(RunFile&);
  Value (*value)(const RunFile&);
};
template <auto Section, auto Member>
inline constexpr Access kAccess{[](RunFile& file) -> Field { return &((file.*Section).*Member); },
                                [](const RunFile& file) -> Value { return (file.*Section).*Member; }};

/// Access that may know more than the place of a member.
struct AnyAccess {
  AnyAccess(Access access) : field(access.field), value(access.value) {}  // NOLINT: tables name members
  AnyAccess(std::function<Field(RunFile&)> to, std::function<Value(const RunFile&)> of)
      : field(std::move(to)), value(std::move(of)) {}

  std::function<Field(RunFile&)> field;
  std::function<Value(const RunFile&)> value;
};

/// Any text but the empty one. `pattern` (a regular expression, for the JSON Schema too) restricts it,
/// `words` say it.
struct TextRule {
  bool required = false;
  std::string pattern = {};
  std::string words = "text";
  std::string unless = {};  ///< another key of the section that stands in for it
};
struct ChoiceRule {
  std::vector<std::string> choices;
};
struct WholeRule {
  int64_t min = 0;
  int64_t max = 0;
};
/// Whole bytes; the file may use units (64MiB).
struct BytesRule {
  int64_t min = 0;
  int64_t max = 0;
};
struct NumberRule {
  double min = 0.0;
  double max = 0.0;
  bool without_min = false;
  bool without_max = false;
};
struct BoolRule {};
/// Texts, none of them twice.
struct TextListRule {
  std::string pattern = {};
  std::string words = "text";
  bool may_be_empty = false;
};
/// Whole numbers, each within the bounds.
struct WholeListRule {
  WholeRule item = {};
  bool may_be_empty = false;
};
/// A tree of sources (sources_rule.h).
struct SourcesRule {};
/// A list of stages (stages_rule.h).
struct StagesRule {};
using Rule = std::variant<TextRule, ChoiceRule, WholeRule, BytesRule, NumberRule, BoolRule, TextListRule,
                          WholeListRule, SourcesRule, StagesRule>;

enum class OnResume {
  kFixed,    ///< another value needs a new run
  kContent,  ///< fixed, and part of content_digest
  kFree,     ///< may differ
};

/// One key of a section: the only place where it is listed. Its default is that of the options struct.
struct Option {
  std::string name;
  AnyAccess access;
  Rule rule;
  OnResume on_resume;
  std::string help;
  std::string default_note = {};  ///< where the default depends on something else
};

struct Section {
  std::string name;
  std::string help;
  std::vector<Option> options;
};

}  // namespace chiliad::spec::detail
