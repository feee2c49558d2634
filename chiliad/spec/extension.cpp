#include "chiliad/spec/extension.h"

#include <fmt/core.h>

#include <utility>

#include "chiliad/base/error.h"

namespace chiliad::spec {
namespace {

template <typename T>
const T& value_of(const OwnValues& own, const std::string& name) {
  const auto found = own.values.find(name);
  if (found == own.values.end() || !std::holds_alternative<T>(found->second))
    throw InternalError("extension", fmt::format("option '{}' was not declared with this type", name));
  return std::get<T>(found->second);
}

/// Set once by main.
ExtensionSource& source() {
  static ExtensionSource the_source;
  return the_source;
}

}  // namespace

int64_t OwnValues::whole(const std::string& name) const {
  return value_of<int64_t>(*this, name);
}
double OwnValues::number(const std::string& name) const {
  return value_of<double>(*this, name);
}
bool OwnValues::flag(const std::string& name) const {
  return value_of<bool>(*this, name);
}
const std::string& OwnValues::text(const std::string& name) const {
  return value_of<std::string>(*this, name);
}

LayerDecl extension_layer(const std::string& kind, const std::string& name, const std::string& component,
                          const ModelOptions& options) {
  LayerDecl layer;
  layer.kind = LayerKind::kExtension;
  layer.name = name;
  layer.component = component;
  layer.width = options.width;
  layer.hidden = options.width * options.mlp_ratio;
  layer.heads = options.heads;
  layer.kv_heads = options.kv_heads == 0 ? options.heads : options.kv_heads;
  layer.head_size = options.head_size == 0 ? options.width / options.heads : options.head_size;
  layer.pixels = 3 * options.patch * options.patch;
  layer.vocabulary = options.vocabulary;
  layer.extension = std::make_shared<ExtensionLayer>();
  layer.extension->kind = kind;
  return layer;
}

void add_linear_params(LayerDecl& layer, const std::string& name, int64_t in, int64_t out, TokensOf rows,
                       const LinearParams& params) {
  const std::string full = layer.name + "." + name;
  const Split bias_split = params.split == Split::kRows ? Split::kRows : Split::kNone;
  layer.params.push_back({full + ".weight", Shape{out, in}, params.init, true, params.split, params.parts});
  layer.params.push_back({full + ".bias", Shape{out}, Init::kZero, false, bias_split, params.parts});
  if (rows == TokensOf::kImage) layer.image_products += in * out;
  if (rows == TokensOf::kText) layer.text_products += in * out;
  if (rows == TokensOf::kItem) layer.item_products += in * out;
}

ExtensionLayer& costs_of(LayerDecl& layer) {
  CHILIAD_CHECK(layer.extension != nullptr, "{} is no layer of an extension", layer.name);
  return *layer.extension;
}

Work extension_work(const LayerDecl& layer, const BatchShape& shape) {
  const ExtensionLayer& costs = *layer.extension;
  const auto items = static_cast<double>(shape.items);
  const auto image = static_cast<double>(shape.image_tokens);
  const auto text = static_cast<double>(shape.text_tokens);
  const double text_pairs = shape.attention_pairs > 0.0 ? shape.attention_pairs : items * text * text;
  Work work;
  work.linear_flops =
      2.0 * items *
      (image * static_cast<double>(layer.image_products) + text * static_cast<double>(layer.text_products) +
       static_cast<double>(layer.item_products));
  work.attention_flops =
      4.0 * (items * image * (image * costs.image_image_width + text * costs.image_text_width) +
             text_pairs * costs.text_text_width);
  work.elementwise = items * (image * costs.image_values + text * costs.text_values + costs.item_values);
  work.launches = costs.launches;
  return work;
}

void set_extension_source(ExtensionSource given) {
  source() = std::move(given);
}

Extensions find_extensions(const ExtensionRequest& request) {
  if (!source())
    throw InvalidInput(request.name,
                       "extensions: expected none, for this program cannot load libraries. Use "
                       "the command chiliad");
  return source()(request);
}

}  // namespace chiliad::spec
