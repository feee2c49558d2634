#include "chiliad/generate/latent_maker.h"

#include <ATen/ATen.h>
#include <fmt/core.h>

#include <charconv>
#include <filesystem>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/encode/frozen_encoder.h"
#include "chiliad/features/identity.h"
#include "chiliad/generate/latent_conditions.h"
#include "chiliad/generate/pixel_maker.h"
#include "chiliad/model/autoencoder.h"
#include "chiliad/model/diffusion.h"

namespace chiliad::generate {
namespace {

constexpr double kNetworkScale = 1000.0;  // of the times of flow matching

/// What every batch is made with.
struct LatentTools {
  spec::DiffusionOptions network;
  spec::AutoencoderOptions space;
  std::unique_ptr<model::Autoencoder> autoencoder;
  model::AutoencoderTiling tiling;
  std::unique_ptr<encode::CaptionEncoder> captions;  // null: classes
  bool is_flow = true;
};

int64_t class_of(const std::string& prompt, int64_t classes) {
  int64_t number = -1;
  const char* end = prompt.data() + prompt.size();
  const auto parsed = std::from_chars(prompt.data(), end, number);
  if (parsed.ec == std::errc() && parsed.ptr == end && number >= 0 && number < classes) return number;
  throw InvalidInput("prompt",
                     fmt::format("expected the number of a class below {}, got '{}'. The model knows "
                                 "classes, no text",
                                 classes, prompt));
}

/// With the prompts, and where guided the same number without.
model::LatentBatch conditions(const LatentTools& tools, const std::vector<Request>& batch,
                              const Steering& steering) {
  const bool guided = steering.guided;
  const auto count = std::ssize(batch);
  if (tools.captions == nullptr) {
    model::LatentBatch made;
    made.labels = at::full({guided ? 2 * count : count}, tools.network.null_class(), at::kLong);
    for (int64_t i = 0; i < count; ++i)
      made.labels[i] = class_of(batch[static_cast<size_t>(i)].prompt, tools.network.classes);
    return made;
  }
  std::vector<std::string> prompts;
  for (const auto& request : batch) prompts.push_back(request.prompt);
  auto encoded = tools.captions->encode(prompts);
  if (guided) encoded.resize(2 * batch.size(), tools.captions->encode({""})[0]);
  std::vector<at::Tensor> texts;
  std::vector<at::Tensor> pooled;
  for (const auto& text : encoded) {
    texts.push_back(text.tokens);
    pooled.push_back(text.pooled);
  }
  const bool takes_pooled = tools.network.pooled_channels > 0;
  return conditions_of_texts(tools.network, texts, takes_pooled ? at::stack(pooled) : at::Tensor(),
                             {batch[0].width, batch[0].height}, steering.embedded_guidance);
}

class LatentDenoising final : public Denoising {
 public:
  LatentDenoising(const LatentTools& tools, const Network& network, const std::vector<Request>& batch,
                  const Steering& steering)
      : tools_(tools), network_(network), batch_(batch), conditions_(conditions(tools, batch, steering)) {
    rows_ = steering.guided ? 2 : 1;
  }

  at::Tensor noise() const override {
    const int64_t factor = tools_.autoencoder->options().factor();
    const int64_t height = batch_[0].height / factor;
    const int64_t width = batch_[0].width / factor;
    const int64_t channels = tools_.network.in_channels;
    return initial_noise(batch_, channels * height * width)
        .view({std::ssize(batch_), channels, height, width});
  }
  at::Tensor predict(const at::Tensor& x, double t) const override {
    model::LatentBatch input = conditions_;
    input.latents = rows_ == 2 ? at::cat({x, x}) : x;
    input.time = at::full({input.latents.size(0)}, tools_.is_flow ? kNetworkScale * t : t, at::kFloat);
    return network_(model::make_diffusion_input(tools_.network, input)).to(at::kFloat);
  }
  at::Tensor pictures(const at::Tensor& x) const override {
    return tools_.autoencoder->decode(model::from_model_space(tools_.space, x), tools_.tiling)
        .permute({0, 2, 3, 1});
  }

 private:
  const LatentTools& tools_;
  const Network& network_;
  std::vector<Request> batch_;
  model::LatentBatch conditions_;
  int64_t rows_ = 1;
};

class LatentMaker final : public PictureMaker {
 public:
  LatentMaker(const spec::RunFile& run, Network network) : PictureMaker(run, std::move(network)) {
    tools_.network = spec::diffusion_options(run.model);
    if (features::is_python(run.encoders.pictures)) {
      throw InvalidInput("encoders.pictures",
                         "expected the folder of an AutoencoderKL, which decodes what the model "
                         "makes, got an encoder in Python. Name one with --set");
    }
    check_folder("encoders.pictures", run.encoders.pictures);
    tools_.autoencoder = std::make_unique<model::Autoencoder>(
        model::Autoencoder::load(run.encoders.pictures, encode::autoencoder_precision(run.encoders)));
    tools_.tiling = {run.encoders.tile, run.encoders.tile_overlap};
    model::check_tiling(tools_.tiling, tools_.autoencoder->options().factor());
    features::ColumnSummary summary;
    summary.scaling_factor = tools_.autoencoder->options().scaling_factor;
    summary.shift_factor = tools_.autoencoder->options().shift_factor;
    tools_.space = latent_space(run.encoders, summary);
    tools_.is_flow = run.objective.kind == "flow";
    if (!spec::reads_captions(run.model)) return;
    if (!features::is_python(run.encoders.text)) check_folder("encoders.text", run.encoders.text);
    tools_.captions = encode::open_caption_encoder(run);
  }
  std::unique_ptr<Denoising> begin(const std::vector<Request>& batch,
                                   const Steering& steering) const override {
    return std::make_unique<LatentDenoising>(tools_, network(), batch, steering);
  }

 private:
  static void check_folder(const char* key, const std::string& folder) {
    if (std::filesystem::is_directory(folder)) return;
    throw InvalidInput(key,
                       fmt::format("expected the folder of an encoder, got {}, which is no folder. Paths of "
                                   "the run are from the folder that it ran in; name another with --set "
                                   "{}=FOLDER",
                                   folder, key));
  }

  LatentTools tools_;
};

}  // namespace

std::unique_ptr<PictureMaker> make_latent_maker(const spec::RunFile& run, Network network) {
  return std::make_unique<LatentMaker>(run, std::move(network));
}

}  // namespace chiliad::generate
