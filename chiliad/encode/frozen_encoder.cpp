#include "chiliad/encode/frozen_encoder.h"

#include <ATen/ATen.h>

#include "chiliad/encode/pipeline_captions.h"
#include "chiliad/encode/python_encoder.h"
#include "chiliad/encode/text_tower.h"
#include "chiliad/features/identity.h"
#include "chiliad/objective/autoencoder.h"

namespace chiliad::encode {
namespace {

class AutoencoderPictures final : public PictureEncoder {
 public:
  explicit AutoencoderPictures(const spec::RunFile& run)
      : autoencoder_(model::Autoencoder::load(run.encoders.pictures, autoencoder_precision(run.encoders))),
        tiling_{run.encoders.tile, run.encoders.tile_overlap},
        mean_(run.encoders.latents == "mean") {
    model::check_tiling(tiling_, autoencoder_.options().factor());
  }

  at::Tensor encode(const at::Tensor& pictures) override {
    const auto latents = autoencoder_.encode(objective::to_pixels(pictures), tiling_);
    return mean_ ? latents.mean : at::stack({latents.mean, latents.logvar}, 1);
  }

 private:
  model::Autoencoder autoencoder_;
  model::AutoencoderTiling tiling_;
  bool mean_;
};

class TextEncoderCaptions final : public CaptionEncoder {
 public:
  explicit TextEncoderCaptions(const spec::RunFile& run)
      : tower_({run.encoders.text, run.encoders.text, text_precision(run.encoders)},
               run.model.text_max_tokens),
        keeps_padding_(spec::pads_captions(run.model)) {}

  std::vector<EncodedText> encode(const std::vector<std::string>& texts) override {
    const auto rows = tower_.rows_of(texts, keeps_padding_ ? tower_.max_tokens() : 0);
    const auto encoding = tower_.encode(rows, keeps_padding_);
    std::vector<EncodedText> encoded;
    for (int64_t i = 0; i < rows.tokens.size(0); ++i) {
      const int64_t kept = keeps_padding_ ? rows.tokens.size(1) : rows.counts[static_cast<size_t>(i)];
      encoded.push_back({encoding.sequence[i].narrow(0, 0, kept).to(at::kFloat),
                         encoding.pooled.defined() ? encoding.pooled[i].to(at::kFloat) : at::Tensor()});
    }
    return encoded;
  }
  int64_t count(const std::string& text) const override { return tower_.count(text); }

 private:
  TextTower tower_;
  bool keeps_padding_;
};

}  // namespace

model::AutoencoderPrecision autoencoder_precision(const spec::EncodersOptions& encoders) {
  return encoders.compute == "bf16" ? model::AutoencoderPrecision::kBf16 : model::AutoencoderPrecision::kFp32;
}

std::unique_ptr<PictureEncoder> open_picture_encoder(const spec::RunFile& run) {
  if (features::is_python(run.encoders.pictures)) return open_python_pictures(run.encoders.pictures);
  return std::make_unique<AutoencoderPictures>(run);
}

std::unique_ptr<CaptionEncoder> open_caption_encoder(const spec::RunFile& run) {
  if (features::is_python(run.encoders.text)) return open_python_captions(run.encoders.text);
  if (is_pipeline(run.encoders.text)) return open_pipeline_captions(run);
  return std::make_unique<TextEncoderCaptions>(run);
}

}  // namespace chiliad::encode
