#include "chiliad/spec/detail/sections.h"

#include <algorithm>
#include <array>
#include <utility>

namespace chiliad::spec::detail {
namespace {

// Old name (or the one that other systems use), name here.
constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kRenamedKeys{{
    {"run.max_steps", "run.steps"},
    {"run.output_dir", "run.dir"},
    {"data.path", "data.index"},
    {"data.batch_size", "data.batch"},
    {"data.num_workers", "data.loader_threads"},
    {"data.micro_batch_size", "data.micro_batch_items"},
    {"optimizer.learning_rate", "optimizer.lr"},
    {"optimizer.warmup", "optimizer.warmup_steps"},
    {"optimizer.grad_clip", "optimizer.clip"},
    {"optimizer.ema_decay", "optimizer.ema"},
    {"model.hidden_size", "model.width"},
    {"model.num_layers", "model.depth"},
    {"model.patch_size", "model.patch"},
    {"precision.dtype", "precision.compute"},
}};

}  // namespace

const std::vector<Section>& sections() {
  static const std::vector<Section> kSections{run_section(),        model_section(),      data_section(),
                                              vision_section(),     encoders_section(),   objective_section(),
                                              optimizer_section(),  precision_section(),  parallel_section(),
                                              evaluation_section(), checkpoint_section(), observe_section(),
                                              supervise_section(),  store_section()};
  return kSections;
}

const Section* find_section(std::string_view name) {
  const auto& all = sections();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Section& s) { return s.name == name; });
  return found == all.end() ? nullptr : &*found;
}

const Option* find_option(const Section& section, std::string_view name) {
  const auto& all = section.options;
  const auto found = std::find_if(all.begin(), all.end(), [&](const Option& o) { return o.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::vector<std::string> section_names() {
  std::vector<std::string> names;
  for (const Section& section : sections()) names.push_back(section.name);
  return names;
}

std::vector<std::string> option_names(const Section& section) {
  std::vector<std::string> names;
  for (const Option& option : section.options) names.push_back(option.name);
  return names;
}

std::optional<std::string> renamed_key(std::string_view key) {
  for (const auto& [old_name, new_name] : kRenamedKeys) {
    if (old_name == key) return std::string(new_name);
  }
  return std::nullopt;
}

}  // namespace chiliad::spec::detail
