#include "chiliad/spec/detail/stages_rule.h"

#include <fmt/core.h>

#include <array>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/spec/detail/number.h"
#include "chiliad/spec/detail/sections.h"
#include "chiliad/spec/detail/source_text.h"
#include "chiliad/spec/detail/value.h"
#include "chiliad/spec/nearest.h"

namespace chiliad::spec::detail {
namespace {

using Kind = YamlNode::Kind;

/// A number of section data that a stage may replace.
struct StageKey {
  const char* name;
  int64_t ShapeStage::*stage;
  int64_t DataOptions::*data;
};

constexpr std::array<StageKey, 5> kNumbers{
    {{"resolution", &ShapeStage::resolution, &DataOptions::resolution},
     {"bucket_step", &ShapeStage::bucket_step, &DataOptions::bucket_step},
     {"bucket_min", &ShapeStage::bucket_min, &DataOptions::bucket_min},
     {"bucket_max", &ShapeStage::bucket_max, &DataOptions::bucket_max},
     {"micro_batch_items", &ShapeStage::micro_batch_items, &DataOptions::micro_batch_items}}};

class StageReader {
 public:
  explicit StageReader(std::string option) : option_(std::move(option)) {}

  ShapeStage stage(const YamlNode& node) const {
    if (node.kind != Kind::kMap)
      refuse(node.place, "expected a stage such as {from: 10000, resolution: 512}");
    ShapeStage stage;
    for (const YamlNode& entry : node.items) field(entry, stage);
    if (stage.from == 0)
      refuse(node.place, "expected a stage with the step that it begins at. Add `from: ...`");
    if (stage == ShapeStage{stage.from})
      refuse(node.place, "expected a stage that changes something, got `from` alone. Add `resolution: ...`");
    return stage;
  }

  [[noreturn]] void refuse(const std::string& place, const std::string& what) const {
    throw InvalidInput(place, fmt::format("data.{}: {}", option_, what));
  }

 private:
  /// Read by the rule of the key of section data that it replaces.
  DataOptions read_as_data(const YamlNode& entry) const {
    RunFile scratch;
    const auto problem = assign(*find_option(*find_section("data"), entry.key), entry, scratch);
    if (problem) refuse(entry.place, fmt::format("{}: {}", entry.key, *problem));
    return scratch.data;
  }

  void field(const YamlNode& entry, ShapeStage& stage) const {
    if (entry.key == "from") {
      const auto from = entry.kind == Kind::kScalar && !entry.quoted
                            ? read_number(WholeRule{1, INT64_MAX}, entry.text)
                            : std::nullopt;
      if (!from) refuse(entry.place, "from: expected a step from 1 on; before it section data holds");
      stage.from = *from;
      return;
    }
    if (entry.key == "buckets") {
      stage.buckets = read_as_data(entry).buckets;
      return;
    }
    std::vector<std::string> keys{"from", "buckets"};
    for (const StageKey& key : kNumbers) {
      if (entry.key == key.name) {
        stage.*key.stage = read_as_data(entry).*key.data;
        return;
      }
      keys.emplace_back(key.name);
    }
    refuse(entry.key_place,
           fmt::format("unknown key {}. {}", quote(entry.key), did_you_mean(entry.key, keys)));
  }

  std::string option_;
};

}  // namespace

std::vector<ShapeStage> read_stages(const YamlNode& node, const std::string& option) {
  const StageReader reader(option);
  std::vector<ShapeStage> stages;
  for (const YamlNode& item : node.items) {
    stages.push_back(reader.stage(item));
    if (stages.size() > 1 && stages.back().from <= stages[stages.size() - 2].from)
      reader.refuse(item.place, "expected steps that rise from stage to stage");
  }
  return stages;
}

std::string yaml_of(const std::vector<ShapeStage>& stages) {
  std::string list;
  for (const ShapeStage& stage : stages) {
    list += fmt::format("{}{{from: {}", list.empty() ? "" : ", ", stage.from);
    if (!stage.buckets.empty()) list += ", buckets: " + yaml_word(stage.buckets);
    for (const StageKey& key : kNumbers) {
      if (stage.*key.stage != 0) list += fmt::format(", {}: {}", key.name, stage.*key.stage);
    }
    list += "}";
  }
  return "[" + list + "]";
}

}  // namespace chiliad::spec::detail
