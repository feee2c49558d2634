#include "chiliad/ops/rotary.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace chiliad::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

constexpr double kTurn = 6.283185307179586;

/// theta^(-2 i / d), in fp32 as the reference does it.
at::Tensor plain_frequencies(const RotaryOptions& options, double theta) {
  const at::Tensor exponents =
      at::arange(0, options.head_size, 2, at::kFloat) / static_cast<double>(options.head_size);
  return 1.0 / at::pow(theta, exponents);
}

/// The base grows with what the document has beyond the original context, so that the slowest pair turns over
/// it as far as it would have over that.
double dynamic_theta(const RotaryOptions& options, int64_t length) {
  const auto context = static_cast<double>(options.original_context);
  const auto size = static_cast<double>(options.head_size);
  const double stretched = std::max(static_cast<double>(length), context) / context;
  return options.theta * std::pow(options.factor * stretched - (options.factor - 1.0), size / (size - 2.0));
}

/// Frequencies that turn less than `low_frequency` times within the original context are divided by the
/// factor, those above `high_frequency` are kept, and between them the two are mixed.
at::Tensor llama3_frequencies(const RotaryOptions& options, const at::Tensor& plain) {
  const auto context = static_cast<double>(options.original_context);
  const at::Tensor wave_length = kTurn / plain;
  const at::Tensor scaled =
      at::where(wave_length > context / options.low_frequency, plain / options.factor, plain);
  const at::Tensor share =
      (context / wave_length - options.low_frequency) / (options.high_frequency - options.low_frequency);
  const at::Tensor mixed = (1 - share) * scaled / options.factor + share * scaled;
  const at::Tensor between = wave_length.ge(context / options.high_frequency)
                                 .logical_and(wave_length.le(context / options.low_frequency));
  return at::where(between, mixed, scaled);
}

/// Index of the pair that turns `turns` times within the original context.
double pair_of_turns(const RotaryOptions& options, double turns) {
  const auto context = static_cast<double>(options.original_context);
  return static_cast<double>(options.head_size) * std::log(context / (turns * kTurn)) /
         (2 * std::log(options.theta));
}

at::Tensor yarn_frequencies(const RotaryOptions& options, const at::Tensor& plain) {
  const double low = std::max(std::floor(pair_of_turns(options, options.beta_fast)), 0.0);
  double high = std::min(std::ceil(pair_of_turns(options, options.beta_slow)),
                         static_cast<double>(options.head_size - 1));
  if (low == high) high += 0.001;
  const at::Tensor pairs = at::arange(options.head_size / 2, at::kFloat);
  const at::Tensor scaled_share = ((pairs - low) / (high - low)).clamp(0, 1);
  return plain / options.factor * scaled_share + plain * (1 - scaled_share);
}

double table_factor(const RotaryOptions& options) {
  if (options.scaling != RotaryScaling::kYarn) return 1.0;
  if (options.attention_factor > 0.0) return options.attention_factor;
  return options.factor > 1.0 ? 0.1 * std::log(options.factor) + 1.0 : 1.0;
}

/// Turns by the angles of the tables, or back.
at::Tensor turn(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, bool back) {
  const auto halves = x.chunk(2, -1);
  at::Tensor out = at::empty(x.sizes(), x.options());
  auto to = out.chunk(2, -1);
  const double sign = back ? -1.0 : 1.0;
  at::mul_out(to[0], halves[0], cos);
  to[0].addcmul_(halves[1], sin, -sign);
  at::mul_out(to[1], halves[1], cos);
  to[1].addcmul_(halves[0], sin, sign);
  return out;
}

/// Its backward is the turn back; it keeps the tables alone.
struct Rotate : public torch::autograd::Function<Rotate> {
  static Variable forward(AutogradContext* context, const Variable& x, const Variable& cos,
                          const Variable& sin) {
    context->save_for_backward({cos, sin});
    return turn(x, cos, sin, false);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    return {turn(gradients[0], saved[0], saved[1], true), {}, {}};
  }
};

}  // namespace

at::Tensor rotary_frequencies(const RotaryOptions& options, int64_t length) {
  const at::Tensor plain = plain_frequencies(options, options.theta);
  switch (options.scaling) {
    case RotaryScaling::kNone:
      return plain;
    case RotaryScaling::kLinear:
      return plain / options.factor;
    case RotaryScaling::kDynamic:
      return plain_frequencies(options, dynamic_theta(options, length));
    case RotaryScaling::kLlama3:
      return llama3_frequencies(options, plain);
    case RotaryScaling::kYarn:
      return yarn_frequencies(options, plain);
  }
  return plain;
}

std::pair<at::Tensor, at::Tensor> rotary_tables(const RotaryOptions& options,
                                                std::span<const int64_t> lengths) {
  std::vector<at::Tensor> parts{at::empty({0, options.head_size / 2}, at::kFloat)};
  for (const int64_t length : lengths) {
    parts.push_back(at::arange(length, at::kFloat).unsqueeze(1) * rotary_frequencies(options, length));
  }
  const at::Tensor angles = at::cat(parts);  // [T, d / 2]
  const double factor = table_factor(options);
  return {at::cos(angles) * factor, at::sin(angles) * factor};
}

at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  return Rotate::apply(x, cos.to(x.scalar_type()).unsqueeze(1), sin.to(x.scalar_type()).unsqueeze(1));
}

}  // namespace chiliad::ops
