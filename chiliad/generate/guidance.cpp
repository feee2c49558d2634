#include "chiliad/generate/guidance.h"

#include <ATen/ATen.h>

#include "chiliad/base/error.h"

namespace chiliad::generate {
namespace {

/// The scale as a factor from the unconditional output on.
double factor_of(const GuidanceOptions& options) {
  return options.form == GuidanceForm::kFromUnconditional ? options.scale : 1.0 + options.scale;
}

}  // namespace

GuidanceForm guidance_form(const std::string& name) {
  CHILIAD_CHECK(name == "from_unconditional" || name == "from_conditional", "no form of guidance");
  return name == "from_conditional" ? GuidanceForm::kFromConditional : GuidanceForm::kFromUnconditional;
}

GuidanceOptions guidance_options(const spec::EvaluationOptions& evaluation) {
  return {.scale = evaluation.guidance,
          .form = guidance_form(evaluation.guidance_form),
          .channels = evaluation.guidance_channels};
}

bool needs_unconditional(const GuidanceOptions& options) {
  return factor_of(options) != 1.0;
}

at::Tensor guide(const GuidanceOptions& options, const at::Tensor& with, const at::Tensor& without) {
  CHILIAD_CHECK(with.sizes() == without.sizes(), "outputs of different shapes");
  if (options.channels == 0 || options.channels == with.size(1))
    return without + factor_of(options) * (with - without);
  CHILIAD_CHECK_LT(options.channels, with.size(1));
  const at::Tensor c = with.narrow(1, 0, options.channels);
  const at::Tensor u = without.narrow(1, 0, options.channels);
  const at::Tensor rest = with.narrow(1, options.channels, with.size(1) - options.channels);
  return at::cat({u + factor_of(options) * (c - u), rest}, 1);
}

at::Tensor without_variance(const at::Tensor& model_output) {
  CHILIAD_CHECK_EQ(model_output.size(1) % 2, 0);
  return model_output.narrow(1, 0, model_output.size(1) / 2);
}

}  // namespace chiliad::generate
