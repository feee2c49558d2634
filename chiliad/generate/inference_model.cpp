#include "chiliad/generate/inference_model.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <filesystem>

#include "chiliad/base/error.h"
#include "chiliad/base/log.h"
#include "chiliad/model/build_model.h"

namespace chiliad::generate {
namespace {

at::Tensor read_parameter(const checkpoint::Checkpoint& ckpt, const std::string& section,
                          const spec::ParamDecl& param) {
  const auto* tensor = ckpt.find(section, param.name);
  if (tensor == nullptr || !(tensor->shape == param.shape)) {
    throw CorruptData(
        ckpt.path().string(),
        fmt::format("{}/{}: expected a tensor {}, got {}", section, param.name, param.shape.to_string(),
                    tensor == nullptr ? "none" : tensor->shape.to_string()));
  }
  at::Tensor value = at::empty(param.shape.sizes(), at::kFloat);
  const std::span<float> values(value.mutable_data_ptr<float>(), static_cast<size_t>(value.numel()));
  ckpt.read(*tensor, Box::whole(param.shape), std::as_writable_bytes(values));
  return value;
}

}  // namespace

InferenceModel::InferenceModel(const checkpoint::Checkpoint& checkpoint,
                               const std::vector<std::string>& overrides)
    : run_(spec::parse_run_file(checkpoint.config(), checkpoint.path().string() + " (config)", "run",
                                overrides)) {
  if (run_.model.family != "pixel_dit" && !spec::is_latent_diffusion(run_.model)) {
    throw InvalidInput(checkpoint.path().string(),
                       fmt::format("expected a diffusion model (pixel_dit, dit, pixart, sd3, flux), got {}, "
                                   "which makes no pictures from prompts",
                                   run_.model.family));
  }
  layers_ = model::build_model(run_.model);
  for (auto& layer : layers_) {
    std::vector<at::Tensor> params;
    for (const auto& param : layer->decl().params) {
      const bool averaged = checkpoint.find("ema", param.name) != nullptr;  // frozen ones have none
      averaged_ = averaged_ || averaged;
      params.push_back(read_parameter(checkpoint, averaged ? "ema" : "model", param));
    }
    layer->bind(std::move(params));
  }
}

at::Tensor InferenceModel::predict(layers::Carry carry) const {
  const at::NoGradGuard no_grad;
  for (const auto& layer : layers_) layer->forward(carry);
  return carry.get("prediction");
}

}  // namespace chiliad::generate
