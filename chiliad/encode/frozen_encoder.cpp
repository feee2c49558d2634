#include "chiliad/encode/frozen_encoder.h"

#include <ATen/ATen.h>
#include <fmt/core.h>

#include <algorithm>

#include "chiliad/base/error.h"
#include "chiliad/model/autoencoder.h"
#include "chiliad/model/text_encoder/text_encoder.h"
#include "chiliad/text/tokenizer.h"

namespace chiliad::encode {
namespace {

class AutoencoderPictures final : public PictureEncoder {
 public:
  explicit AutoencoderPictures(const spec::RunFile& run)
      : autoencoder_(model::Autoencoder::load(run.encoders.pictures, model::AutoencoderPrecision::kFp32)),
        mean_(run.encoders.latents == "mean") {}

  at::Tensor encode(const at::Tensor& pictures) override {
    const at::Tensor pixels =
        pictures.permute({0, 3, 1, 2}).to(at::kFloat).contiguous().div_(127.5).sub_(1.0);
    const auto latents = autoencoder_.encode(pixels);
    return mean_ ? latents.mean : at::stack({latents.mean, latents.logvar}, 1);
  }

 private:
  model::Autoencoder autoencoder_;
  bool mean_;
};

class TextEncoderCaptions final : public CaptionEncoder {
 public:
  explicit TextEncoderCaptions(const spec::RunFile& run)
      : tokenizer_(text::open_tokenizer(run.encoders.text)),
        encoder_(model::TextEncoder::open(run.encoders.text)),
        max_tokens_(run.model.text_max_tokens),
        keeps_padding_(spec::pads_captions(run.model)) {
    const int64_t most = encoder_.options().positions;
    if (most > 0 && max_tokens_ > most) {
      throw InvalidInput("model.text_max_tokens",
                         fmt::format("expected at most the {} tokens of encoders.text, got {}. Set it to {}",
                                     most, max_tokens_, most));
    }
  }

  std::vector<EncodedText> encode(const std::vector<std::string>& texts) override {
    std::vector<std::vector<int32_t>> rows;
    size_t longest = keeps_padding_ ? static_cast<size_t>(max_tokens_) : 1;
    for (const auto& text : texts) {
      rows.push_back(text::fit_tokens(*tokenizer_, text, max_tokens_));
      longest = std::max(longest, rows.back().size());
    }
    const auto items = std::ssize(rows);
    at::Tensor tokens =
        at::full({items, static_cast<int64_t>(longest)}, encoder_.options().pad_token, at::kLong);
    at::Tensor mask = at::zeros({items, static_cast<int64_t>(longest)}, at::kLong);
    for (int64_t i = 0; i < items; ++i) {
      const auto& row = rows[static_cast<size_t>(i)];
      std::copy(row.begin(), row.end(), tokens[i].mutable_data_ptr<int64_t>());
      mask[i].narrow(0, 0, kept(row)).fill_(1);
    }
    const auto encoding = encoder_.encode(tokens, mask);
    std::vector<EncodedText> encoded;
    for (int64_t i = 0; i < items; ++i) {
      const int64_t count = kept(rows[static_cast<size_t>(i)]);
      encoded.push_back({encoding.sequence[i].narrow(0, 0, count).to(at::kFloat),
                         encoding.pooled.defined() ? encoding.pooled[i].to(at::kFloat) : at::Tensor()});
    }
    return encoded;
  }

  int64_t count(const std::string& text) const override {
    return std::ssize(text::fit_tokens(*tokenizer_, text, max_tokens_));
  }

 private:
  /// Rows of a text that the network sees; the encoder attends to them all, as in those pipelines.
  [[nodiscard]] int64_t kept(const std::vector<int32_t>& row) const {
    return keeps_padding_ ? max_tokens_ : std::ssize(row);
  }

  std::unique_ptr<text::Tokenizer> tokenizer_;
  model::TextEncoder encoder_;
  int64_t max_tokens_;
  bool keeps_padding_;
};

}  // namespace

std::unique_ptr<PictureEncoder> open_picture_encoder(const spec::RunFile& run) {
  return std::make_unique<AutoencoderPictures>(run);
}

std::unique_ptr<CaptionEncoder> open_caption_encoder(const spec::RunFile& run) {
  return std::make_unique<TextEncoderCaptions>(run);
}

}  // namespace chiliad::encode
