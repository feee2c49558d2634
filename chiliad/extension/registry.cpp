#include "chiliad/extension/registry.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/spec/nearest.h"

namespace chiliad {
namespace {

constexpr std::array kFamilies{"pixel_dit", "dit", "pixart", "sd3", "flux", "llama", "qwen2"};
constexpr std::array kObjectives{"flow", "ddpm"};

bool is_word(const std::string& name) {
  return !name.empty() && std::islower(static_cast<unsigned char>(name.front())) != 0 &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '_';
         });
}

void check_name(const std::string& what, const std::string& name) {
  if (is_word(name)) return;
  throw InvalidInput(what, fmt::format("expected a name of a to z, 0 to 9 and _, got '{}'. Rename it", name));
}

template <typename Known>
void check_base(const std::string& what, const std::string& name, const std::string& base,
                const Known& known) {
  if (std::find(known.begin(), known.end(), base) != known.end()) return;
  throw InvalidInput(what + " " + name,
                     fmt::format("base: expected one of {}, got '{}'. {}", fmt::join(known, ", "), base,
                                 spec::did_you_mean(base, {known.begin(), known.end()})));
}

template <typename List>
void check_new(const std::string& what, const std::string& name, const List& list) {
  check_name(what, name);
  if (std::none_of(list.begin(), list.end(), [&](const auto& one) { return one.name == name; })) return;
  throw InvalidInput(what, fmt::format("'{}' is added twice. Rename one", name));
}

void check_options(const std::string& owner, const std::vector<spec::OwnOption>& options) {
  for (const auto& option : options) check_name(owner + " option", option.name);
}

}  // namespace

void Registry::add_layer(const std::string& name, layers::MakeLayer make) {
  check_name("layer", name);
  if (!makers_->emplace(name, std::make_shared<layers::ExtensionMaker>(std::move(make))).second)
    throw InvalidInput("layer", fmt::format("'{}' is added twice. Rename one", name));
}

void Registry::add_family(spec::FamilyExtension family) {
  check_new("family", family.name, families_);
  check_base("family", family.name, family.base, kFamilies);
  check_options("family " + family.name, family.options);
  families_.push_back(std::move(family));
}

void Registry::add_objective(Objective objective) {
  check_new("objective", objective.name, objectives_);
  check_base("objective", objective.name, objective.base, kObjectives);
  check_options("objective " + objective.name, objective.options);
  objectives_.push_back(std::move(objective));
}

spec::Extensions Registry::take() {
  spec::Extensions taken;
  for (auto& given : families_) {
    auto family = std::make_shared<spec::FamilyExtension>(std::move(given));
    family->table = [make = std::move(family->table), makers = makers_, name = family->name](
                        const spec::ModelOptions& options, const spec::OwnValues& own) {
      spec::LayerTable table = make(options, own);
      for (auto& layer : table.layers) {
        if (layer.kind != spec::LayerKind::kExtension) continue;
        const auto maker = makers->find(layer.extension->kind);
        if (maker == makers->end()) {
          std::vector<std::string> known;
          for (const auto& [kind, unused] : *makers) known.push_back(kind);
          throw InvalidInput("family " + name, fmt::format("layer {}: no library adds the kind '{}'. {}",
                                                           layer.name, layer.extension->kind,
                                                           spec::did_you_mean(layer.extension->kind, known)));
        }
        layer.extension->maker = maker->second;
      }
      return table;
    };
    taken.families.push_back(std::move(family));
  }
  for (auto& given : objectives_) {
    auto objective = std::make_shared<objective::LossExtension>();
    objective->name = given.name;
    objective->base = given.base;
    objective->options = std::move(given.options);
    objective->losses = std::move(given.losses);
    taken.objectives.push_back(std::move(objective));
  }
  families_.clear();
  objectives_.clear();
  return taken;
}

}  // namespace chiliad
