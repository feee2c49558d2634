// A layer and a loss that Chiliad does not have, as a library that it loads (docs/extending.md).
#include <ATen/ATen.h>

#include "chiliad/extension/registry.h"

namespace {

using namespace chiliad;

/// x + down(silu(gate(x)) * up(x)) for every image token.
class GatedMlp final : public layers::Layer {
 public:
  using Layer::Layer;

  void forward(layers::Carry& carry) const override {
    const at::Tensor& x = carry.get("image");  // [B, N, D]; of N, each tensor-parallel rank has its rows
    carry.set("image", x + linear("down", at::silu(linear("gate", x)) * linear("up", x)));
  }
};

spec::LayerDecl gated_mlp(const std::string& name, const spec::ModelOptions& options, int64_t inner) {
  spec::LayerDecl layer = spec::extension_layer("gated_mlp", name, "backbone", options);
  spec::add_linear_params(layer, "gate", options.width, inner, spec::TokensOf::kImage);
  spec::add_linear_params(layer, "up", options.width, inner, spec::TokensOf::kImage);
  spec::add_linear_params(layer, "down", inner, options.width, spec::TokensOf::kImage,
                          {.init = spec::Init::kZero});
  layer.reads = layer.writes = {"image"};
  spec::costs_of(layer).image_values = static_cast<double>(3 * options.width + 6 * inner);
  spec::costs_of(layer).launches = 6.0;
  return layer;
}

/// pixel_dit with a gated MLP behind every block.
spec::LayerTable gated_dit(const spec::ModelOptions& options, const spec::OwnValues& own) {
  spec::LayerTable table;
  for (const spec::LayerDecl& layer : spec::base_table(options).layers) {
    table.layers.push_back(layer);
    if (layer.kind == spec::LayerKind::kDiffusionBlock)
      table.layers.push_back(gated_mlp("gated." + layer.name, options, own.whole("gate_width")));
  }
  return table;
}

/// Pseudo-Huber error: squared where it is small against `huber_scale`, absolute where it is large.
at::Tensor huber(const objective::LossInputs& in) {
  const double scale = in.own.number("huber_scale");
  const at::Tensor target = in.options.prediction == "sample" ? in.x0 : in.noise - in.x0;
  const at::Tensor errors = ((in.prediction - target).square() + scale * scale).sqrt() - scale;
  return errors.flatten(1).mean(1);  // [B]
}

}  // namespace

extern "C" void chiliad_register(chiliad::Registry& registry) {
  registry.add_layer<GatedMlp>("gated_mlp");
  registry.add_family(
      {.name = "gated_dit",
       .base = "pixel_dit",
       .options =
           {{.name = "gate_width", .value = int64_t{64}, .min = 1, .max = 65536, .help = "inner width"}},
       .table = gated_dit});
  registry.add_objective(
      {.name = "huber_flow",
       .base = "flow",
       .options =
           {{.name = "huber_scale", .value = 0.5, .min = 1e-3, .max = 1e3, .help = "where the error turns"}},
       .losses = huber});
}
