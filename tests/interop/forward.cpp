// interop-forward KIND FOLDER INPUTS OUTPUTS: what a model in the Hugging Face layout gives for the tensors
// of one safetensors file, as the tests of label interop compare it with diffusers and transformers.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/core.h>

#include <cstring>
#include <exception>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/device/tensor.h"
#include "chiliad/io/file.h"
#include "chiliad/model/autoencoder.h"
#include "chiliad/model/build_model.h"
#include "chiliad/model/diffusion.h"
#include "chiliad/model/language_model.h"
#include "chiliad/model/load_weights.h"
#include "chiliad/weights/configs/diffusion.h"
#include "chiliad/weights/configs/language.h"
#include "chiliad/weights/key_tables/model_keys.h"

namespace chiliad {
namespace {

namespace fs = std::filesystem;
using Tensors = std::map<std::string, at::Tensor>;

at::ScalarType type_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return at::kFloat;
    case DType::kI64:
      return at::kLong;
    case DType::kBool:
      return at::kBool;
    default:
      throw InvalidInput("inputs", fmt::format("expected F32, I64 or BOOL, got {}", dtype_name(dtype)));
  }
}

Tensors read_tensors(const fs::path& path) {
  const auto file = weights::SafetensorsFile::open(path);
  Tensors tensors;
  for (const auto& entry : file.tensors()) {
    at::Tensor tensor = at::empty(entry.shape.sizes(), at::TensorOptions(type_of(entry.dtype)));
    file.read(entry.name,
              {static_cast<std::byte*>(tensor.mutable_data_ptr()), static_cast<size_t>(entry.num_bytes())});
    tensors.emplace(entry.name, tensor);
  }
  return tensors;
}

void write_tensors(const fs::path& path, const Tensors& tensors) {
  std::vector<weights::TensorBytes> stored;
  Tensors kept;
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor values = kept[name] = tensor.to(at::kFloat).contiguous();
    const auto* data = static_cast<const std::byte*>(values.const_data_ptr());
    stored.push_back({{name, DType::kF32, Shape(values.sizes().vec())},
                      {data, static_cast<size_t>(values.numel()) * sizeof(float)}});
  }
  auto file = io::File::create(path);
  static_cast<void>(weights::write_safetensors(file, stored, {}));
  file.close();
}

void bind(std::vector<std::unique_ptr<layers::Layer>>& layers, std::vector<std::vector<at::Tensor>> params) {
  for (size_t i = 0; i < layers.size(); ++i) layers[i]->bind(std::move(params[i]));
}

Tensors diffusion(const fs::path& folder, const Tensors& inputs) {
  const auto options = weights::read_diffusion_config(folder / "config.json");
  auto layers = model::build_diffusion(options);
  bind(layers, model::load_diffusion_weights(options, folder));
  const auto input = [&](const char* name) {
    const auto found = inputs.find(name);
    return found == inputs.end() ? at::Tensor() : found->second;
  };
  model::LatentBatch batch;
  for (const auto& [name, entry] :
       std::initializer_list<std::pair<const char*, at::Tensor*>>{{"latents", &batch.latents},
                                                                  {"time", &batch.time},
                                                                  {"labels", &batch.labels},
                                                                  {"text", &batch.text},
                                                                  {"text_mask", &batch.text_mask},
                                                                  {"pooled", &batch.pooled},
                                                                  {"guidance", &batch.guidance},
                                                                  {"resolution", &batch.resolution},
                                                                  {"aspect_ratio", &batch.aspect_ratio}})
    *entry = input(name);
  auto carry = model::make_diffusion_input(options, batch);
  for (const auto& layer : layers) layer->forward(carry);
  return {{"prediction", carry.get("prediction")}};
}

Tensors language(const fs::path& folder, const Tensors& inputs) {
  const auto options = weights::read_language_config(folder / "config.json");
  auto layers = model::build_model(options);
  bind(layers, model::load_weights(spec::make_layer_table(options), folder, weights::model_keys(options)));
  const at::Tensor& tokens = inputs.at("tokens");
  model::TextBatch batch;
  batch.tokens = tokens;
  batch.cu_seqlens = at::tensor({int64_t{0}, tokens.size(0)}, at::kLong);
  batch.token_weights = at::ones(tokens.sizes(), at::kFloat);
  auto carry = model::make_text_input(options, batch);
  for (const auto& layer : layers) layer->forward(carry);
  return {{"logits", carry.get("logits")}};
}

Tensors autoencoder(const fs::path& folder, const Tensors& inputs) {
  const auto coder = model::Autoencoder::load(folder, model::AutoencoderPrecision::kFp32);
  const auto latents = coder.encode(inputs.at("pixels"));
  return {{"mean", latents.mean}, {"logvar", latents.logvar}, {"pixels", coder.decode(inputs.at("latents"))}};
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() != 4) throw InvalidInput("interop-forward", "expected KIND FOLDER INPUTS OUTPUTS");
  const std::map<std::string, Tensors (*)(const fs::path&, const Tensors&)> kinds{
      {"diffusion", diffusion}, {"language", language}, {"autoencoder", autoencoder}};
  const at::NoGradGuard no_grad;
  write_tensors(arguments[3], kinds.at(arguments[0])(arguments[1], read_tensors(arguments[2])));
  return 0;
}

}  // namespace
}  // namespace chiliad

int main(int argc, char** argv) {
  try {
    return chiliad::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return chiliad::exit_code(error);
  }
}
