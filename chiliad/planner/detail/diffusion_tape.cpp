#include "chiliad/planner/detail/diffusion_tape.h"

#include <algorithm>
#include <utility>

#include "chiliad/base/error.h"

namespace chiliad::planner::detail {
namespace {

constexpr int64_t kTimeFeatures = 256;

}  // namespace

DiffusionTape::DiffusionTape(const spec::LayerDecl& layer, const TapeSetup& setup)
    : layer_(layer), ops_(setup) {}

const spec::ParamDecl* DiffusionTape::find(const std::string& name) const {
  const auto is_it = [&](const spec::ParamDecl& param) {
    return param.name == name || param.name == layer_.name + "." + name;
  };
  const auto found = std::find_if(layer_.params.begin(), layer_.params.end(), is_it);
  return found == layer_.params.end() ? nullptr : &*found;
}

int64_t DiffusionTape::count_of(const std::string& param) const {
  const spec::ParamDecl* found = find(param);
  CHILIAD_CHECK(found != nullptr, "{}", param);
  return found->shape.count();
}

int64_t DiffusionTape::inputs_of(const std::string& linear) const {
  return count_of(linear + ".weight") / outputs_of(linear);
}

int64_t DiffusionTape::outputs_of(const std::string& linear) const {
  return count_of(linear + ".bias");
}

Value DiffusionTape::linear(const std::string& name, Value x, int64_t rows, std::vector<Value> beside) {
  return ops_.linear(x, rows, inputs_of(name), outputs_of(name), std::move(beside));
}

Value DiffusionTape::embedded_image(const std::string& name, bool positions) {
  const Value patches = ops_.tape().add({.inputs = {}, .result = ops_.bytes(image_rows() * layer_.pixels)});
  const Value image = linear(name, patches, image_rows());
  if (!positions) return image;
  return ops_.tape().add({.inputs = {image}, .result = ops_.bytes(image_size()), .passes_gradient = true});
}

Value DiffusionTape::time_mlp(const std::string& name, int64_t rows) {
  const Value features = ops_.tape().add({.inputs = {}, .result = ops_.bytes(rows * kTimeFeatures)});
  const Value inner = linear(name + ".linear_1", features, rows);
  return linear(name + ".linear_2", ops_.activation(inner, rows * outputs_of(name + ".linear_1")), rows);
}

Value DiffusionTape::pooled_mlp(const std::string& name) {
  const Value pooled = ops_.constant(items() * inputs_of(name + ".linear_1"));
  const Value inner = linear(name + ".linear_1", pooled, items());
  return linear(name + ".linear_2", ops_.activation(inner, condition_size()), items());
}

Value DiffusionTape::modulation(const std::string& name, Value condition) {
  const Value made = linear(name, ops_.activation(condition, condition_size()), items());
  return ops_.tape().add({.inputs = {made}, .gradient = ops_.bytes(items() * outputs_of(name))});
}

Value DiffusionTape::normed(Value x, Value modulation, int64_t rows, bool apart) {
  return ops_.again(ops_.norm_modulate(x, modulation, rows, layer_.width, apart));
}

Value DiffusionTape::norm_heads(Value x, int64_t rows) {
  return ops_.rms_norm(x, rows * layer_.heads, layer_.head_size);
}

DiffusionTape::Stream DiffusionTape::stream(const StreamNames& names, Value x, Value modulation,
                                            int64_t rows) {
  const Value input = normed(x, modulation, rows);
  std::vector<Value> made;
  for (const auto& name : names.products) made.push_back(linear(name, input, rows));
  if (!has(names.query_norm + ".weight")) return {made[0], made[1], made[2]};
  return {norm_heads(made[0], rows), norm_heads(made[1], rows), made[2]};
}

DiffusionTape::Stream DiffusionTape::image_stream(const std::string& name, Value x, Value modulation) {
  return stream({{name + ".to_q", name + ".to_k", name + ".to_v"}, name + ".norm_q", name + ".norm_k"}, x,
                modulation, image_rows());
}

DiffusionTape::Stream DiffusionTape::text_stream(const std::string& name, Value x, Value modulation) {
  return stream({{name + ".add_q_proj", name + ".add_k_proj", name + ".add_v_proj"},
                 name + ".norm_added_q",
                 name + ".norm_added_k"},
                x, modulation, text_rows());
}

Value DiffusionTape::self_attention(const Stream& stream, int64_t rows) {
  const int64_t length = rows / items();
  return ops_.attention({stream.q, stream.k, stream.v},
                        {rows, length, length, layer_.heads, layer_.head_size});
}

Value DiffusionTape::cross_attention(Value q, Value k, Value v) {
  const auto& shape = ops_.setup().shape;
  return ops_.attention(
      {q, k, v}, {image_rows(), shape.text_tokens, shape.image_tokens, layer_.heads, layer_.head_size});
}

Value DiffusionTape::feed_forward(const std::string& name, Value x, Value modulation, int64_t rows) {
  const Value inner = linear(name + ".net.0.proj", normed(x, modulation, rows), rows);
  const Value active = ops_.again(ops_.activation(inner, rows * layer_.hidden));
  return linear(name + ".net.2", active, rows, {inner});
}

Value DiffusionTape::joined(const std::vector<Value>& parts, int64_t size) {
  return ops_.tape().add({.inputs = parts, .result = ops_.bytes(size), .passes_gradient = true});
}

void DiffusionTape::write_prediction(const std::string& name, Value image, Value modulation, bool apart) {
  const Value patches = linear(name, normed(image, modulation, image_rows(), apart), image_rows());
  const int64_t size = image_rows() * outputs_of(name);
  ops_.write(ops_.tape().add({.inputs = {patches}, .result = ops_.bytes(size)}));
}

}  // namespace chiliad::planner::detail
