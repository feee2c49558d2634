#include "chiliad/ops/linear.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/ops/cpu/gemm.h"
#include "chiliad/ops/cpu/norm.h"
#include "chiliad/ops/cpu/tensor_rows.h"
#include "chiliad/ops/modulation.h"
#include "chiliad/ops/remake.h"

namespace chiliad::ops {
namespace {

using cpu::as_matrix;
using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

/// Fewer rows than this do not pay for laying out the weight.
constexpr int64_t kFewRows = 48;

std::vector<int64_t> with_width(const at::Tensor& x, int64_t width) {
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = width;
  return sizes;
}

/// Biases one after the other in fp32; undefined without them.
at::Tensor joined_bias(const std::vector<at::Tensor>& biases) {
  if (biases.empty() || !biases.front().defined()) return {};
  std::vector<at::Tensor> wide;
  for (const auto& bias : biases) wide.push_back(bias.to(at::kFloat));
  return wide.size() == 1 ? wide.front().contiguous() : at::cat(wide);
}

/// rows [M, in] times each weight, [out, in]; a bias to each.   returns: [M, out] each
std::vector<at::Tensor> products(const cpu::Rows& rows, int64_t num_rows,
                                 const std::vector<at::Tensor>& weights,
                                 const std::vector<at::Tensor>& biases) {
  const int64_t width = weights.front().size(0);
  std::vector<at::Tensor> outs;
  for (const auto& weight : weights) outs.push_back(at::empty({num_rows, width}, weight.options()));
  const at::Tensor bias = joined_bias(biases);
  const cpu::StackedRows stacked(weights);
  const auto count = static_cast<int64_t>(weights.size());
  cpu::gemm({num_rows, width * count, weights.front().size(1)}, {rows}, {stacked, true},
            cpu::TensorSink(outs, bias.defined() ? bias.const_data_ptr<float>() : nullptr));
  return outs;
}

/// What backward of `products` gives for the weights: gradients^T rows.
struct ParamGradients {
  std::vector<at::Tensor> weights;
  std::vector<at::Tensor> biases;
};
ParamGradients param_gradients(const std::vector<at::Tensor>& gradients, const cpu::Rows& rows,
                               const std::vector<at::Tensor>& weights, bool want_biases) {
  const int64_t width = weights.front().size(0);
  const auto count = static_cast<int64_t>(weights.size());
  ParamGradients result;
  for (const auto& weight : weights) result.weights.push_back(at::empty_like(weight));
  const at::Tensor sums =
      want_biases ? at::zeros({count * width}, weights.front().options().dtype(at::kFloat)) : at::Tensor();
  const cpu::SideBySideRows upstream(gradients, want_biases ? sums.mutable_data_ptr<float>() : nullptr);
  cpu::gemm({count * width, weights.front().size(1), gradients.front().size(0)}, {upstream, true}, {rows},
            cpu::StackedSink(result.weights));
  for (int64_t i = 0; i < count && want_biases; ++i)
    result.biases.push_back(sums.narrow(0, i * width, width).to(weights.front().scalar_type()));
  return result;
}

/// The gradient of rows: sum of gradient times weight.
void row_gradients(const std::vector<at::Tensor>& gradients, const std::vector<at::Tensor>& weights,
                   const cpu::RowSink& out) {
  const auto count = static_cast<int64_t>(weights.size());
  cpu::gemm({gradients.front().size(0), weights.front().size(1), count * weights.front().size(0)},
            {cpu::SideBySideRows(gradients)}, {cpu::StackedRows(weights)}, out);
}

std::optional<Variable> optional(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional<Variable>(tensor) : std::nullopt;
}

struct Linear : public torch::autograd::Function<Linear> {
  static Variable forward(AutogradContext* context, const Variable& x, const Variable& weight,
                          const std::optional<Variable>& bias) {
    context->save_for_backward({weight.requires_grad() ? x : at::Tensor(), weight});
    context->saved_data["sizes"] = x.sizes().vec();
    context->saved_data["has_bias"] = bias.has_value() && bias->requires_grad();
    const at::Tensor matrix = as_matrix(x);
    const auto outs = products(cpu::TensorRows(matrix), matrix.size(0), {weight.contiguous()},
                               {bias.value_or(at::Tensor())});
    return outs[0].view(with_width(x, weight.size(0)));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor gradient = as_matrix(gradients[0]);
    const at::Tensor weight = saved[1].contiguous();
    const bool has_bias = context->saved_data["has_bias"].toBool();
    variable_list result(3);
    if (context->needs_input_grad(0)) {
      const at::Tensor of_x = at::empty({gradient.size(0), weight.size(1)}, weight.options());
      row_gradients({gradient}, {weight}, cpu::TensorSink({of_x}));
      result[0] = of_x.view(context->saved_data["sizes"].toIntVector());
    }
    if (saved[0].defined()) {
      const at::Tensor x = as_matrix(saved[0]);
      auto params = param_gradients({gradient}, cpu::TensorRows(x), {weight}, has_bias);
      result[1] = params.weights[0];
      if (has_bias) result[2] = params.biases[0];
    } else if (has_bias) {
      result[2] = gradient.sum(0);
    }
    return result;
  }
};

/// Adds a product's parameter gradients to where they are kept, if there is such a place: autograd would make
/// a tensor of each and add that. Returns what is left for autograd.
at::Tensor add_weight_gradient(const at::Tensor& weight, const at::Tensor& gradient, const at::Tensor& x) {
  if (!weight.is_leaf() || !weight.grad().defined()) return gradient.t().matmul(x);
  weight.mutable_grad().addmm_(gradient.t(), x);
  return {};
}
at::Tensor add_bias_gradient(const at::Tensor& bias, const at::Tensor& gradient) {
  if (!bias.is_leaf() || !bias.grad().defined()) return gradient.sum(0);
  bias.mutable_grad().add_(gradient.sum(0));
  return {};
}

/// ATen's product, whose backward adds to the parameters' gradients in place.
struct PlainLinear : public torch::autograd::Function<PlainLinear> {
  static Variable forward(AutogradContext* context, const Variable& x, const Variable& weight,
                          const std::optional<Variable>& bias) {
    const bool has_bias = bias.has_value() && bias->defined();
    context->save_for_backward(
        {weight.requires_grad() ? x : at::Tensor(), weight, has_bias ? *bias : at::Tensor()});
    context->saved_data["sizes"] = x.sizes().vec();
    return at::linear(x, weight, has_bias ? *bias : at::Tensor());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor gradient = gradients[0].reshape({-1, gradients[0].size(-1)});
    variable_list result(3);
    if (context->needs_input_grad(0))
      result[0] = gradient.matmul(saved[1]).view(context->saved_data["sizes"].toIntVector());
    if (context->needs_input_grad(1))
      result[1] = add_weight_gradient(saved[1], gradient, saved[0].reshape({-1, saved[0].size(-1)}));
    if (saved[2].defined() && context->needs_input_grad(2)) result[2] = add_bias_gradient(saved[2], gradient);
    return result;
  }
};

struct GeluLinear : public torch::autograd::Function<GeluLinear> {
  static Variable forward(AutogradContext* context, const Variable& inner, const Variable& weight,
                          const std::optional<Variable>& bias) {
    context->save_for_backward({inner, weight});
    context->saved_data["has_bias"] = bias.has_value();
    const at::Tensor matrix = as_matrix(inner);
    const auto outs =
        products(cpu::GeluRows(matrix), matrix.size(0), {weight.contiguous()}, {bias.value_or(at::Tensor())});
    return outs[0].view(with_width(inner, weight.size(0)));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor gradient = as_matrix(gradients[0]);
    const at::Tensor inner = as_matrix(saved[0]);
    const at::Tensor weight = saved[1].contiguous();
    const bool has_bias = context->saved_data["has_bias"].toBool();
    variable_list result(3);
    if (context->needs_input_grad(1)) {
      auto params = param_gradients({gradient}, cpu::GeluRows(inner), {weight}, has_bias);
      result[1] = params.weights[0];
      if (has_bias) result[2] = params.biases[0];
    }
    if (context->needs_input_grad(0)) {
      const at::Tensor of_inner = at::empty_like(inner);
      row_gradients({gradient}, {weight}, cpu::GeluSlopeSink(of_inner, inner));
      result[0] = of_inner.view(saved[0].sizes());
    }
    return result;
  }
};

/// Inputs: x, shift, scale, weights, biases (all or none).
struct NormModulateLinears : public torch::autograd::Function<NormModulateLinears> {
  static variable_list forward(AutogradContext* context, double eps, bool has_bias,
                               const std::vector<int64_t>& lengths, at::TensorList inputs) {
    const auto count = (inputs.size() - 3) / (has_bias ? 2 : 1);
    const cpu::NormInput input = input_of(inputs, lengths);
    const at::Tensor moments = cpu::row_moments(input.x, eps);
    std::vector<at::Tensor> weights(inputs.begin() + 3, inputs.begin() + 3 + static_cast<ptrdiff_t>(count));
    const std::vector<at::Tensor> biases(inputs.begin() + 3 + static_cast<ptrdiff_t>(count), inputs.end());
    auto outs = products(cpu::NormRows(input, moments), input.x.size(0), weights, biases);
    for (auto& out : outs) out = out.view(with_width(inputs[0], out.size(-1)));
    variable_list kept = {inputs[0], inputs[1], inputs[2], moments};
    kept.insert(kept.end(), weights.begin(), weights.end());
    context->save_for_backward(kept);
    context->saved_data["has_bias"] = has_bias;
    context->saved_data["lengths"] = lengths;
    return outs;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const bool has_bias = context->saved_data["has_bias"].toBool();
    const cpu::NormInput input = input_of(saved, context->saved_data["lengths"].toIntVector());
    const std::vector<at::Tensor> weights(saved.begin() + 4, saved.end());
    std::vector<at::Tensor> upstream;
    for (size_t i = 0; i < weights.size(); ++i) {
      upstream.push_back(gradients[i].defined()
                             ? as_matrix(gradients[i])
                             : at::zeros({input.x.size(0), weights[i].size(0)}, input.x.options()));
    }
    auto params = param_gradients(upstream, cpu::NormRows(input, saved[3]), weights, has_bias);
    const at::Tensor of_normed = at::empty(input.x.sizes(), input.x.options().dtype(at::kFloat));
    row_gradients(upstream, weights, cpu::TensorSink({of_normed}));
    const cpu::NormInput of_input = cpu::norm_backward(input, saved[3], of_normed);
    variable_list result = {Variable(),
                            Variable(),
                            Variable(),
                            of_input.x.view(saved[0].sizes()),
                            of_input.shift.view(saved[1].sizes()),
                            of_input.scale.view(saved[2].sizes())};
    result.insert(result.end(), params.weights.begin(), params.weights.end());
    result.insert(result.end(), params.biases.begin(), params.biases.end());
    return result;
  }

 private:
  static cpu::NormInput input_of(at::TensorList inputs, const std::vector<int64_t>& lengths) {
    return {as_matrix(inputs[0]), as_matrix(inputs[1]), as_matrix(inputs[2]), lengths};
  }
};

bool takes_linear(const at::Tensor& x, const LinearParams& params) {
  return x.numel() / x.size(-1) >= kFewRows && cpu::takes({x, params.weight, params.bias});
}

}  // namespace

at::Tensor linear(const at::Tensor& x, const LinearParams& params) {
  if (!takes_linear(x, params)) return plain::linear(x, params);
  return Linear::apply(x, params.weight, optional(params.bias));
}

at::Tensor gelu_linear(const at::Tensor& inner, const LinearParams& params) {
  if (!takes_linear(inner, params)) return plain::gelu_linear(inner, params);
  return GeluLinear::apply(inner, params.weight, optional(params.bias));
}

std::vector<at::Tensor> norm_modulate_linears(const at::Tensor& x, const at::Tensor& shift,
                                              const at::Tensor& scale, double eps,
                                              const std::vector<LinearParams>& params,
                                              const std::vector<int64_t>& lengths) {
  const bool has_bias = params.front().bias.defined();
  bool fits = cpu::takes({x, shift, scale}) && x.numel() / x.size(-1) >= kFewRows;
  for (const auto& one : params)
    fits = fits && cpu::takes({x, one.weight, one.bias}) && one.weight.is_contiguous() &&
           one.weight.sizes() == params.front().weight.sizes() && one.bias.defined() == has_bias;
  if (!fits) return plain::norm_modulate_linears(x, shift, scale, eps, params, lengths);
  variable_list inputs = {x, shift, scale};
  for (const auto& one : params) inputs.push_back(one.weight);
  for (const auto& one : params) {
    if (has_bias) inputs.push_back(one.bias);
  }
  return NormModulateLinears::apply(eps, has_bias, lengths, at::TensorList(inputs));
}

namespace plain {

at::Tensor linear(const at::Tensor& x, const LinearParams& params) {
  if (!params.weight.requires_grad()) return at::linear(x, params.weight, params.bias);
  return PlainLinear::apply(x, params.weight, optional(params.bias));
}

at::Tensor gelu_linear(const at::Tensor& inner, const LinearParams& params) {
  return remade([inner] { return ops::gelu(inner); },
                [&](const at::Tensor& y) { return plain::linear(y, params); });
}

std::vector<at::Tensor> norm_modulate_linears(const at::Tensor& x, const at::Tensor& shift,
                                              const at::Tensor& scale, double eps,
                                              const std::vector<LinearParams>& params,
                                              const std::vector<int64_t>& lengths) {
  const auto normed_rows = [x, shift, scale, eps, lengths] {
    return ops::norm_modulate(x, shift, scale, eps, lengths);
  };
  return remade_for_all(normed_rows, [&](const at::Tensor& normed) {
    std::vector<at::Tensor> outs;
    for (const auto& one : params) outs.push_back(plain::linear(normed, one));
    return outs;
  });
}

}  // namespace plain
}  // namespace chiliad::ops
