#include "chiliad/spec/extension_json.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"

namespace chiliad::spec {
namespace {

using Json = nlohmann::json;

Json option_json(const OwnOption& option) {
  Json json{{"name", option.name},
            {"min", option.min},
            {"max", option.max},
            {"choices", option.choices},
            {"help", option.help}};
  std::visit([&](const auto& value) { json["value"] = value; }, option.value);
  return json;
}

/// JSON keeps whole numbers, numbers, booleans and texts apart.
OwnValue value_of(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_float()) return json.get<double>();
  if (json.is_number()) return json.get<int64_t>();
  return json.get<std::string>();
}

std::vector<OwnOption> options_of(const Json& list) {
  std::vector<OwnOption> options;
  for (const Json& json : list) {
    OwnOption option;
    option.name = json.at("name").get<std::string>();
    option.value = value_of(json.at("value"));
    option.min = json.at("min");
    option.max = json.at("max");
    option.choices = json.at("choices").get<std::vector<std::string>>();
    option.help = json.at("help").get<std::string>();
    options.push_back(std::move(option));
  }
  return options;
}

/// Name, base and options: what a process without torch knows of a family and of an objective.
template <typename Extension>
Json named_json(const Extension& extension) {
  Json json{{"name", extension.name}, {"base", extension.base}, {"options", Json::array()}};
  for (const OwnOption& option : extension.options) json["options"].push_back(option_json(option));
  return json;
}

template <typename Extension>
void read_named(const Json& json, Extension& extension) {
  extension.name = json.at("name").get<std::string>();
  extension.base = json.at("base").get<std::string>();
  extension.options = options_of(json.at("options"));
}

Json param_json(const ParamDecl& param) {
  return {{"name", param.name},          {"shape", param.shape.sizes()}, {"init", param.init},
          {"decay", param.decay},        {"split", param.split},         {"parts", param.parts},
          {"init_base", param.init_base}};
}

ParamDecl param_of(const Json& json) {
  ParamDecl param;
  param.name = json.at("name").get<std::string>();
  param.shape = Shape(json.at("shape").get<std::vector<int64_t>>());
  param.init = json.at("init").get<Init>();
  param.decay = json.at("decay");
  param.split = json.at("split").get<Split>();
  param.parts = json.at("parts");
  param.init_base = json.at("init_base");
  return param;
}

/// Calls visit(name, member) for every number of a layer.
template <typename Layer, typename Visit>
void visit_sizes(Layer& layer, Visit visit) {
  visit("width", layer.width);
  visit("hidden", layer.hidden);
  visit("pixels", layer.pixels);
  visit("heads", layer.heads);
  visit("kv_heads", layer.kv_heads);
  visit("head_size", layer.head_size);
  visit("vocabulary", layer.vocabulary);
  visit("positions", layer.positions);
  visit("image_products", layer.image_products);
  visit("text_products", layer.text_products);
  visit("item_products", layer.item_products);
}

template <typename Costs, typename Visit>
void visit_costs(Costs& costs, Visit visit) {
  visit("image_image_width", costs.image_image_width);
  visit("image_text_width", costs.image_text_width);
  visit("text_text_width", costs.text_text_width);
  visit("image_values", costs.image_values);
  visit("text_values", costs.text_values);
  visit("item_values", costs.item_values);
  visit("launches", costs.launches);
}

Json layer_json(const LayerDecl& layer) {
  Json json{{"kind", layer.kind},     {"name", layer.name},     {"component", layer.component},
            {"reads", layer.reads},   {"writes", layer.writes}, {"lends_params", layer.lends_params},
            {"params", Json::array()}};
  for (const ParamDecl& param : layer.params) json["params"].push_back(param_json(param));
  visit_sizes(layer, [&](const char* name, int64_t value) { json[name] = value; });
  if (layer.extension) {
    json["extension"] = {{"kind", layer.extension->kind}};
    visit_costs(*layer.extension, [&](const char* name, double value) { json["extension"][name] = value; });
  }
  return json;
}

LayerDecl layer_of(const Json& json) {
  LayerDecl layer;
  layer.kind = json.at("kind").get<LayerKind>();
  layer.name = json.at("name").get<std::string>();
  layer.component = json.at("component").get<std::string>();
  layer.reads = json.at("reads").get<std::vector<std::string>>();
  layer.writes = json.at("writes").get<std::vector<std::string>>();
  layer.lends_params = json.at("lends_params");
  for (const Json& param : json.at("params")) layer.params.push_back(param_of(param));
  visit_sizes(layer, [&](const char* name, int64_t& value) { value = json.at(name); });
  if (!json.contains("extension")) return layer;
  const Json& extension = json.at("extension");
  layer.extension = std::make_shared<ExtensionLayer>();
  layer.extension->kind = extension.at("kind").get<std::string>();
  visit_costs(*layer.extension, [&](const char* name, double& value) { value = extension.at(name); });
  return layer;
}

}  // namespace

std::string extensions_to_json(const Extensions& extensions, const LayerTable* table) {
  Json json{{"families", Json::array()}, {"objectives", Json::array()}, {"layers", Json::array()}};
  for (const auto& family : extensions.families) json["families"].push_back(named_json(*family));
  for (const auto& objective : extensions.objectives) json["objectives"].push_back(named_json(*objective));
  if (table != nullptr)
    for (const LayerDecl& layer : table->layers) json["layers"].push_back(layer_json(layer));
  return json_text(json);
}

Extensions extensions_from_json(const std::string& text) {
  try {
    const Json json = parse_json<Json>(text);
    LayerTable table;
    for (const Json& layer : json.at("layers")) table.layers.push_back(layer_of(layer));
    Extensions extensions;
    for (const Json& one : json.at("families")) {
      auto family = std::make_shared<FamilyExtension>();
      read_named(one, *family);
      family->table = [table](const ModelOptions&, const OwnValues&) { return table; };
      extensions.families.push_back(std::move(family));
    }
    for (const Json& one : json.at("objectives")) {
      auto objective = std::make_shared<ObjectiveExtension>();
      read_named(one, *objective);
      extensions.objectives.push_back(std::move(objective));
    }
    return extensions;
  } catch (const Json::exception& error) {
    throw InternalError("extensions", fmt::format("what the worker told cannot be read: {}", error.what()));
  }
}

}  // namespace chiliad::spec
