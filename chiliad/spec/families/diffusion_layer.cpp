#include "chiliad/spec/families/diffusion_layer.h"

#include <fmt/core.h>

#include "chiliad/base/error.h"

namespace chiliad::spec::families {
namespace {

constexpr int64_t kTimeFeatures = 256;
constexpr int64_t kMlpRatio = 4;

void count_products(LayerDecl& layer, int64_t values, Rows rows) {
  if (rows == Rows::kImage || rows == Rows::kBoth) layer.image_products += values;
  if (rows == Rows::kText || rows == Rows::kBoth) layer.text_products += values;
  if (rows == Rows::kItem) layer.item_products += values;
}

void add_bias(LayerDecl& layer, const std::string& name, int64_t size) {
  layer.params.push_back({name + ".bias", Shape{size}, Init::kZero, false});
}

}  // namespace

LayerDecl diffusion_layer(LayerKind kind, const std::string& name, const std::string& component,
                          const DiffusionOptions& options) {
  LayerDecl layer;
  layer.kind = kind;
  layer.name = name;
  layer.component = component;
  layer.width = options.width();
  layer.hidden = kMlpRatio * layer.width;
  layer.heads = layer.kv_heads = options.heads;
  layer.head_size = options.head_size;
  layer.pixels = options.in_channels * options.patch * options.patch;
  return layer;
}

void add_linear(LayerDecl& layer, const std::string& name, int64_t in, int64_t out, Rows rows, Init init) {
  layer.params.push_back({name + ".weight", Shape{out, in}, init, true});
  add_bias(layer, name, out);
  count_products(layer, in * out, rows);
}

void add_patch_projection(LayerDecl& layer, const std::string& name, const DiffusionOptions& options) {
  const Shape shape{layer.width, options.in_channels, options.patch, options.patch};
  layer.params.push_back({name + ".weight", shape, Init::kXavierUniform, true});
  add_bias(layer, name, layer.width);
  count_products(layer, shape.count(), Rows::kImage);
}

void add_time_mlp(LayerDecl& layer, const std::string& name, int64_t width, int64_t numbers) {
  add_linear(layer, name + ".linear_1", kTimeFeatures, width, Rows::kItem, Init::kNormal002);
  add_linear(layer, name + ".linear_2", width, width, Rows::kItem, Init::kNormal002);
  count_products(layer, (numbers - 1) * width * (kTimeFeatures + width), Rows::kItem);
}

void add_text_mlp(LayerDecl& layer, const std::string& name, int64_t in, int64_t width, Rows rows) {
  add_linear(layer, name + ".linear_1", in, width, rows, Init::kNormal002);
  add_linear(layer, name + ".linear_2", width, width, rows, Init::kNormal002);
}

void add_feed_forward(LayerDecl& layer, const std::string& name, Rows rows) {
  add_linear(layer, name + ".net.0.proj", layer.width, layer.hidden, rows);
  add_linear(layer, name + ".net.2", layer.hidden, layer.width, rows);
}

void add_attention(LayerDecl& layer, const std::string& name, Rows queries, Rows keys) {
  add_linear(layer, name + ".to_q", layer.width, layer.width, queries);
  add_linear(layer, name + ".to_k", layer.width, layer.width, keys);
  add_linear(layer, name + ".to_v", layer.width, layer.width, keys);
  add_linear(layer, name + ".to_out.0", layer.width, layer.width, queries);
}

void add_joint_attention(LayerDecl& layer, const std::string& name, bool norms, bool gives_text) {
  add_attention(layer, name, Rows::kImage, Rows::kImage);
  for (const char* product : {".add_q_proj", ".add_k_proj", ".add_v_proj"})
    add_linear(layer, name + product, layer.width, layer.width, Rows::kText);
  if (gives_text) add_linear(layer, name + ".to_add_out", layer.width, layer.width, Rows::kText);
  if (!norms) return;
  for (const char* norm : {".norm_q", ".norm_k", ".norm_added_q", ".norm_added_k"})
    add_head_norm(layer, name + norm);
}

void add_head_norm(LayerDecl& layer, const std::string& name) {
  layer.params.push_back({name + ".weight", Shape{layer.head_size}, Init::kOne, false});
}

void add_modulation(LayerDecl& layer, const std::string& name, int64_t parts) {
  add_linear(layer, name, layer.width, parts * layer.width, Rows::kItem, Init::kZero);
}

void add_prediction(LayerDecl& layer, const std::string& name, const DiffusionOptions& options) {
  const int64_t values = options.out_channels * options.patch * options.patch;
  add_linear(layer, name, layer.width, values, Rows::kImage, Init::kZero);
  layer.reads = {"image", "condition"};
  layer.writes = {"prediction"};
}

Work diffusion_work(const LayerDecl& layer, const BatchShape& shape) {
  const auto items = static_cast<double>(shape.items);
  const auto image = static_cast<double>(shape.image_tokens);
  const auto text = static_cast<double>(shape.text_tokens);
  const auto d = static_cast<double>(layer.width);
  const auto f = static_cast<double>(layer.hidden);
  Work work;
  work.linear_flops =
      2.0 * items *
      (image * static_cast<double>(layer.image_products) + text * static_cast<double>(layer.text_products) +
       static_cast<double>(layer.item_products));
  const auto block = [&](double pairs, double values, double launches) {
    work.attention_flops = 4.0 * items * pairs * d;
    work.elementwise = items * values;
    work.launches = launches;
  };
  const double both = image + text;
  switch (layer.kind) {
    case LayerKind::kDitBlock:
      block(image * image, image * (14 * d + 3 * f), 28.0);
      break;
    case LayerKind::kPixartBlock:
      block(image * (image + text), image * (18 * d + 3 * f) + text * 2 * d, 36.0);
      break;
    case LayerKind::kSd3Block:
    case LayerKind::kFluxDoubleBlock:
      block(both * both, both * (18 * d + 3 * f), 66.0);
      break;
    case LayerKind::kSd3DualBlock:
      block(both * both + image * image, both * (18 * d + 3 * f) + image * 8 * d, 80.0);
      break;
    case LayerKind::kFluxSingleBlock:
      block(both * both, both * (16 * d + 4 * f), 40.0);
      break;
    default:
      block(0.0, image * (4 * d + 3 * static_cast<double>(layer.pixels)) + text * 2 * d, 20.0);
  }
  return work;
}

namespace {

void require(bool good, const char* key, const std::string& expected, int64_t got) {
  if (good) return;
  throw InvalidInput(key, fmt::format("expected {}, got {}. Correct the model's options", expected, got));
}

void check_options(const DiffusionOptions& options) {
  const int64_t d = options.width();
  for (const auto& [key, value] : {std::pair{"diffusion.heads", options.heads},
                                   {"diffusion.head_size", options.head_size},
                                   {"diffusion.depth", options.depth},
                                   {"diffusion.in_channels", options.in_channels},
                                   {"diffusion.out_channels", options.out_channels},
                                   {"diffusion.patch", options.patch}})
    require(value > 0, key, "a number above 0", value);
  if (options.family != "flux") {
    require(options.sample_size >= options.patch, "diffusion.sample_size", "at least the patch",
            options.sample_size);
    require(d % 4 == 0, "diffusion.heads * head_size", "a multiple of 4, as positions have sines and cosines",
            d);
  }
  if (options.size_conditions)
    require(d % 3 == 0, "diffusion.heads * head_size", "a multiple of 3, as three conditions share it", d);
  for (const int64_t index : options.dual_attention_layers)
    require(index < options.depth, "diffusion.dual_attention_layers", "indices of blocks", index);
  if (options.family != "flux") return;
  int64_t turned = 0;
  require(options.rope_axes.size() == 3, "diffusion.rope_axes", "three axes",
          static_cast<int64_t>(options.rope_axes.size()));
  for (const int64_t size : options.rope_axes) {
    require(size % 2 == 0, "diffusion.rope_axes", "even numbers", size);
    turned += size;
  }
  require(turned == options.head_size, "diffusion.rope_axes",
          fmt::format("a sum of {}, the head size", options.head_size), turned);
}

}  // namespace

LayerTable diffusion_table(const DiffusionOptions& options) {
  check_options(options);
  if (options.family == "dit") return dit_table(options);
  if (options.family == "pixart") return pixart_table(options);
  if (options.family == "sd3") return sd3_table(options);
  if (options.family == "flux") return flux_table(options);
  throw InvalidInput("diffusion.family",
                     fmt::format("expected dit, pixart, sd3 or flux, got '{}'. Choose one", options.family));
}

}  // namespace chiliad::spec::families
