#include "apps/chiliad/skeletons.h"

#include <cctype>
#include <string_view>

#include "chiliad/base/error.h"

namespace chiliad::cli {
namespace {

// @name@ and @Name@ stand for the name; lines as people write them.

constexpr std::string_view kLayer =
    R"(// A layer for every image token, and a family that has one behind each block of pixel_dit.
#include <ATen/ATen.h>

#include "chiliad/extension/registry.h"

namespace {

using namespace chiliad;

/// x + out(silu(in(x))).
class @Name@ final : public layers::Layer {
 public:
  using Layer::Layer;

  void forward(layers::Carry& carry) const override {
    const at::Tensor& x = carry.get("image");  // [B, N, D]; of N, each tensor-parallel rank has its rows
    carry.set("image", x + linear("out", at::silu(linear("in", x))));
  }
};

/// Parameters and work: what balance, memory and checkpoints know of the layer.
spec::LayerDecl @name@(const std::string& name, const spec::ModelOptions& options, int64_t inner) {
  spec::LayerDecl layer = spec::extension_layer("@name@", name, "backbone", options);
  spec::add_linear_params(layer, "in", options.width, inner, spec::TokensOf::kImage);
  spec::add_linear_params(layer, "out", inner, options.width, spec::TokensOf::kImage,
                          {.init = spec::Init::kZero});
  layer.reads = layer.writes = {"image"};
  spec::costs_of(layer).image_values = static_cast<double>(3 * options.width + 3 * inner);
  spec::costs_of(layer).launches = 4.0;
  return layer;
}

spec::LayerTable table(const spec::ModelOptions& options, const spec::OwnValues& own) {
  spec::LayerTable made;
  for (const spec::LayerDecl& layer : spec::base_table(options).layers) {
    made.layers.push_back(layer);
    if (layer.kind == spec::LayerKind::kDiffusionBlock)
      made.layers.push_back(@name@("@name@." + layer.name, options, own.whole("@name@_width")));
  }
  return made;
}

}  // namespace

extern "C" void chiliad_register(chiliad::Registry& registry) {
  registry.add_layer<@Name@>("@name@");
  registry.add_family({.name = "@name@_dit",
                       .base = "pixel_dit",
                       .options = {{.name = "@name@_width",
                                    .value = int64_t{64},
                                    .min = 1,
                                    .max = 65536,
                                    .help = "inner width of the layer"}},
                       .table = table});
}
)";

constexpr std::string_view kModel =
    R"(// A model family on pixels with blocks of its own; text encoder, embedding and head are pixel_dit's.
#include <ATen/ATen.h>

#include "chiliad/extension/registry.h"
#include "chiliad/ops/attention.h"
#include "chiliad/ops/modulation.h"

namespace {

using namespace chiliad;

/// Attention of the image's tokens to each other, and an MLP. Each tensor-parallel rank has its rows of the
/// image, and all rows for its heads and its part of the MLP.
class @Name@Block final : public layers::Layer {
 public:
  using Layer::Layer;

  void forward(layers::Carry& carry) const override {
    const int64_t length = carry.get("image_positions").size(0);
    const at::Tensor condition = carry.get("condition").unsqueeze(1);  // [B, 1, D]: time and caption
    at::Tensor x = carry.get("image");                                 // [B, N, D], this rank's rows of N
    const auto qkv = gather_linear("qkv", norm("norm1", x + condition), length).out.chunk(3, -1);
    const at::Tensor mixed = ops::attention(qkv[0], qkv[1], qkv[2], decl().heads / ranks().size(), {});
    x = x + linear_scatter("proj", mixed);
    const at::Tensor inner = gather_linear("fc1", norm("norm2", x), length).out;
    carry.set("image", x + linear_scatter("fc2", ops::gelu(inner)));
  }

 private:
  [[nodiscard]] at::Tensor norm(const std::string& name, const at::Tensor& x) const {
    return ops::layer_norm(x, param(name + ".weight"), param(name + ".bias"));
  }
};

void add_norm(spec::LayerDecl& layer, const std::string& name) {
  layer.params.push_back({layer.name + "." + name + ".weight", Shape{layer.width}, spec::Init::kOne});
  layer.params.push_back({layer.name + "." + name + ".bias", Shape{layer.width}});
}

/// Parameters and work: what balance, memory and checkpoints know of the layer.
spec::LayerDecl block(const std::string& name, const spec::ModelOptions& options) {
  using enum spec::TokensOf;
  spec::LayerDecl layer = spec::extension_layer("@name@_block", name, "backbone", options);
  const int64_t d = layer.width;
  const int64_t f = layer.hidden;
  add_norm(layer, "norm1");
  spec::add_linear_params(layer, "qkv", d, 3 * d, kImage, {.split = spec::Split::kRows, .parts = 3});
  spec::add_linear_params(layer, "proj", d, d, kImage, {.split = spec::Split::kColumns});
  add_norm(layer, "norm2");
  spec::add_linear_params(layer, "fc1", d, f, kImage, {.split = spec::Split::kRows});
  spec::add_linear_params(layer, "fc2", f, d, kImage,
                          {.init = spec::Init::kZero, .split = spec::Split::kColumns});
  layer.reads = {"image", "condition"};
  layer.writes = {"image"};
  spec::costs_of(layer).image_image_width = static_cast<double>(d);
  spec::costs_of(layer).image_values = static_cast<double>(14 * d + 3 * f);
  spec::costs_of(layer).launches = 16.0;
  return layer;
}

spec::LayerTable table(const spec::ModelOptions& options, const spec::OwnValues& own) {
  spec::LayerTable made;
  const int64_t repeats = own.whole("block_repeats");
  for (const spec::LayerDecl& layer : spec::base_table(options).layers) {
    if (layer.kind != spec::LayerKind::kDiffusionBlock) {
      made.layers.push_back(layer);
      continue;
    }
    for (int64_t i = 0; i < repeats; ++i)
      made.layers.push_back(block(layer.name + "." + std::to_string(i), options));
  }
  return made;
}

}  // namespace

extern "C" void chiliad_register(chiliad::Registry& registry) {
  registry.add_layer<@Name@Block>("@name@_block");
  registry.add_family({.name = "@name@",
                       .base = "pixel_dit",
                       .options = {{.name = "block_repeats",
                                    .value = int64_t{1},
                                    .min = 1,
                                    .max = 16,
                                    .help = "blocks in the place of one"}},
                       .table = table});
}
)";

constexpr std::string_view kObjective =
    R"(// A loss for the path of flow matching: x_t = (1 - t) x0 + t noise.
#include <ATen/ATen.h>

#include "chiliad/extension/registry.h"

namespace {

using namespace chiliad;

/// Pseudo-Huber error: squared where it is small against `@name@_scale`, absolute where it is large. One loss an
/// item, a mean over the item's values.
at::Tensor losses(const objective::LossInputs& in) {
  const double scale = in.own.number("@name@_scale");
  const at::Tensor target = in.options.prediction == "sample" ? in.x0 : in.noise - in.x0;
  const at::Tensor errors = ((in.prediction - target).square() + scale * scale).sqrt() - scale;
  return errors.flatten(1).mean(1);  // [B]
}

}  // namespace

extern "C" void chiliad_register(chiliad::Registry& registry) {
  registry.add_objective({.name = "@name@",
                          .base = "flow",
                          .options = {{.name = "@name@_scale",
                                       .value = 0.5,
                                       .min = 1e-3,
                                       .max = 1e3,
                                       .help = "where the error turns from squared to absolute"}},
                          .losses = losses});
}
)";

constexpr std::string_view kCMake = R"(cmake_minimum_required(VERSION 3.25)
project(@name@ LANGUAGES CXX)
# Where Chiliad is: -DChiliad_DIR=BUILD_TREE, or -DCMAKE_PREFIX_PATH=INSTALLED_TREE.
find_package(Chiliad REQUIRED)
chiliad_add_extension(@name@ @name@.cpp)

# Tests: trains on the pictures, resumes, and compares layouts with one device.
enable_testing()
configure_file(run.yaml "${CMAKE_BINARY_DIR}/run.yaml" COPYONLY)
chiliad_test_extension(run.yaml "${CMAKE_CURRENT_SOURCE_DIR}/pictures")
)";

constexpr std::string_view kRunFile =
    R"(# A small run with lib@name@.so, which lies beside this file in the build folder.
version: 1
extensions: [lib@name@.so]
run: {steps: 8, seed: 1}
model:
@model@
data: {index: index, batch: 6, resolution: 32, micro_batch_items: 3, loader_threads: 1}
objective:
@objective@
optimizer: {lr: 1.0e-3}
checkpoint: {every: 4}
)";

std::string replaced(std::string text, const std::string& mark, const std::string& by) {
  for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + by.size()))
    text.replace(at, mark.size(), by);
  return text;
}

/// gated_mlp is GatedMlp.
std::string class_name(const std::string& name) {
  std::string made;
  bool upper = true;
  for (const char c : name) {
    if (c != '_') made += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = c == '_';
  }
  return made;
}

std::string source_of(const std::string& kind) {
  if (kind == "layer") return std::string(kLayer);
  return std::string(kind == "model" ? kModel : kObjective);
}

std::string run_file_of(const std::string& kind) {
  const std::string sizes = "\n  width: 32\n  depth: 2\n  heads: 2";
  std::string model = "  family: pixel_dit" + sizes;
  std::string objective = "  kind: flow\n  prediction: velocity";
  if (kind == "layer") model = "  family: @name@_dit" + sizes + "\n  @name@_width: 48";
  if (kind == "model") model = "  family: @name@" + sizes + "\n  block_repeats: 2";
  if (kind == "objective") objective = "  kind: @name@\n  prediction: velocity\n  @name@_scale: 0.3";
  return replaced(replaced(std::string(kRunFile), "@model@", model), "@objective@", objective);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> skeleton_files(const std::string& kind,
                                                                const std::string& name) {
  const auto named = [&](const std::string& text) {
    return replaced(replaced(text, "@name@", name), "@Name@", class_name(name));
  };
  return {{name + ".cpp", named(source_of(kind))},
          {"CMakeLists.txt", named(std::string(kCMake))},
          {"run.yaml", named(run_file_of(kind))}};
}

}  // namespace chiliad::cli
