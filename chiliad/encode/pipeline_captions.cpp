#include "chiliad/encode/pipeline_captions.h"

#include <ATen/ATen.h>
#include <fmt/core.h>

#include "chiliad/base/error.h"
#include "chiliad/encode/text_tower.h"

namespace chiliad::encode {
namespace {

namespace fs = std::filesystem;

/// The n-th text encoder of a pipeline, n from 1. max_tokens 0: all that it has.
std::unique_ptr<TextTower> open_tower(const spec::EncodersOptions& encoders, int number, int64_t max_tokens) {
  const fs::path folder = encoders.text;
  const std::string suffix = number == 1 ? "" : fmt::format("_{}", number);
  const fs::path encoder = folder / ("text_encoder" + suffix);
  if (!fs::is_directory(encoder)) return nullptr;
  return std::make_unique<TextTower>(
      TowerFiles{folder / ("tokenizer" + suffix), encoder, text_precision(encoders)}, max_tokens);
}

const TextTower& needed(const std::unique_ptr<TextTower>& tower, const fs::path& folder, const char* name) {
  if (tower != nullptr) return *tower;
  throw InvalidInput(
      "encoders.text",
      fmt::format("expected a folder {} in {}, got none. Take the whole pipeline", name, folder.string()));
}

/// Rows of a CLIP model before its last block, and its projection.
struct ClipRows {
  at::Tensor rows;    // [B, 77, D]
  at::Tensor pooled;  // [B, P]
};
ClipRows clip_rows(const TextTower& tower, const std::vector<std::string>& texts) {
  const auto encoding = tower.encode(tower.rows_of(texts, tower.max_tokens()), true, true);
  return {encoding.hidden.at(encoding.hidden.size() - 2).to(at::kFloat), encoding.pooled.to(at::kFloat)};
}

at::Tensor t5_rows(const TextTower& tower, const std::vector<std::string>& texts) {
  return tower.encode(tower.rows_of(texts, tower.max_tokens()), true).sequence.to(at::kFloat);
}

std::vector<EncodedText> split(const at::Tensor& rows, const at::Tensor& pooled) {
  std::vector<EncodedText> texts;
  for (int64_t i = 0; i < rows.size(0); ++i) texts.push_back({rows[i].contiguous(), pooled[i].contiguous()});
  return texts;
}

class Sd3Captions final : public CaptionEncoder {
 public:
  explicit Sd3Captions(const spec::RunFile& run)
      : folder_(run.encoders.text),
        width_(run.model.text_channels),
        t5_length_(run.model.text_max_tokens),
        first_(open_tower(run.encoders, 1, 0)),
        second_(open_tower(run.encoders, 2, 0)),
        t5_(open_tower(run.encoders, 3, t5_length_)) {
    static_cast<void>(needed(first_, folder_, "text_encoder"));
    static_cast<void>(needed(second_, folder_, "text_encoder_2"));
    const int64_t clip = first_->options().width + second_->options().width;
    if (clip > width_ || (t5_ != nullptr && t5_->options().width != width_)) {
      throw InvalidInput(
          "model.text_channels",
          fmt::format("expected the width of text_encoder_3 (4096 in SD3), at least {}, got {}", clip,
                      width_));
    }
  }

  std::vector<EncodedText> encode(const std::vector<std::string>& texts) override {
    const auto first = clip_rows(*first_, texts);
    const auto second = clip_rows(*second_, texts);
    const at::Tensor clip = at::cat({first.rows, second.rows}, 2);
    const at::Tensor wide = at::constant_pad_nd(clip, {0, width_ - clip.size(2)});
    const at::Tensor t5 = t5_ != nullptr ? t5_rows(*t5_, texts)
                                         : at::zeros({std::ssize(texts), t5_length_, width_}, at::kFloat);
    return split(at::cat({wide, t5}, 1), at::cat({first.pooled, second.pooled}, 1));
  }
  int64_t count(const std::string&) const override { return t5_length_; }

 private:
  fs::path folder_;
  int64_t width_;
  int64_t t5_length_;
  std::unique_ptr<TextTower> first_;
  std::unique_ptr<TextTower> second_;
  std::unique_ptr<TextTower> t5_;  // may be missing
};

class FluxCaptions final : public CaptionEncoder {
 public:
  explicit FluxCaptions(const spec::RunFile& run)
      : folder_(run.encoders.text),
        clip_(open_tower(run.encoders, 1, 0)),
        t5_(open_tower(run.encoders, 2, run.model.text_max_tokens)) {
    static_cast<void>(needed(clip_, folder_, "text_encoder"));
    static_cast<void>(needed(t5_, folder_, "text_encoder_2"));
  }

  std::vector<EncodedText> encode(const std::vector<std::string>& texts) override {
    const auto clip = clip_->encode(clip_->rows_of(texts, clip_->max_tokens()), true);
    return split(t5_rows(*t5_, texts), clip.pooled.to(at::kFloat));
  }
  int64_t count(const std::string&) const override { return t5_->max_tokens(); }

 private:
  fs::path folder_;
  std::unique_ptr<TextTower> clip_;
  std::unique_ptr<TextTower> t5_;
};

}  // namespace

bool is_pipeline(const fs::path& folder) {
  return fs::is_directory(folder / "text_encoder");
}

std::unique_ptr<CaptionEncoder> open_pipeline_captions(const spec::RunFile& run) {
  if (run.model.family == "sd3") return std::make_unique<Sd3Captions>(run);
  if (run.model.family == "flux") return std::make_unique<FluxCaptions>(run);
  throw InvalidInput(
      "encoders.text",
      fmt::format("expected the folder of one text encoder for family {}, got the pipeline {}. Name "
                  "its text_encoder folder",
                  run.model.family, run.encoders.text));
}

}  // namespace chiliad::encode
