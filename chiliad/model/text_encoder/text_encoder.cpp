#include "chiliad/model/text_encoder/text_encoder.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "chiliad/base/error.h"
#include "chiliad/model/load_weights.h"
#include "chiliad/model/text_encoder/encoder_layers.h"
#include "chiliad/spec/families/families.h"
#include "chiliad/weights/configs/text_encoder.h"

namespace chiliad::model {
namespace {

constexpr const char* kPlace = "text encoder";

bool is_block(spec::LayerKind kind) {
  return kind == spec::LayerKind::kBertBlock || kind == spec::LayerKind::kClipTextBlock ||
         kind == spec::LayerKind::kT5Block;
}

}  // namespace

TextEncoder TextEncoder::open(const std::filesystem::path& folder, at::ScalarType type) {
  if (type != at::kFloat && type != at::kBFloat16) {
    throw InvalidInput(kPlace, fmt::format("precision: expected fp32 or bf16, got {}. Weights stored in fp16 "
                                           "are read in either",
                                           at::toString(type)));
  }
  auto options = weights::read_text_encoder_config(folder / "config.json");
  const auto source = weights::WeightSource::open(folder);
  if (options.family == "bert") {
    options.pooler =
        source.find("pooler.dense.weight") != nullptr || source.find("bert.pooler.dense.weight") != nullptr;
  }
  auto params = load_weights(spec::families::text_encoder_table(options), source,
                             weights::text_encoder_keys(options), type);
  TextEncoder encoder(options, std::move(params));
  encoder.sentence_ = weights::read_sentence_modules(folder);
  return encoder;
}

TextEncoder::TextEncoder(const spec::TextEncoderOptions& options, std::vector<std::vector<at::Tensor>> params)
    : options_(options) {
  const auto table = spec::families::text_encoder_table(options_);
  CHILIAD_CHECK_EQ(params.size(), table.layers.size());
  for (size_t i = 0; i < params.size(); ++i) {
    layers_.push_back(make_text_encoder_layer(table.layers[i], options_));
    layers_.back()->bind(std::move(params[i]));
  }
}

void TextEncoder::check(const at::Tensor& tokens, const at::Tensor& mask) const {
  CHILIAD_CHECK(tokens.dim() == 2 && tokens.scalar_type() == at::kLong && mask.sizes() == tokens.sizes());
  if (tokens.numel() == 0) return;
  if (options_.positions > 0 && tokens.size(1) > options_.positions) {
    throw InvalidInput(kPlace, fmt::format("expected texts of at most {} tokens, got {}. Cut them",
                                           options_.positions, tokens.size(1)));
  }
  const auto least = tokens.min().item<int64_t>();
  const auto largest = tokens.max().item<int64_t>();
  if (least < 0 || largest >= options_.vocabulary) {
    throw InvalidInput(kPlace,
                       fmt::format("expected token ids from 0 to {}, got {}. Take the tokenizer that belongs "
                                   "to the model",
                                   options_.vocabulary - 1, least < 0 ? least : largest));
  }
  if (!mask.select(1, 0).to(at::kBool).all().item<bool>())
    throw InvalidInput(kPlace,
                       "expected at least one token in each text, at its begin, got none. Pad at the end");
  if (options_.family == "clip_text" && !options_.pool_at_largest &&
      !tokens.eq(options_.end_token).any(1).all().item<bool>()) {
    throw InvalidInput(kPlace,
                       fmt::format("expected the end token {} in each text, got none. Encode with special "
                                   "tokens, and keep them when you cut",
                                   options_.end_token));
  }
}

TextEncoding TextEncoder::encode(const at::Tensor& tokens, const at::Tensor& mask, bool want_hidden,
                                 const at::Tensor& token_types) const {
  const at::NoGradGuard no_grad;
  check(tokens, mask);
  const at::Tensor counts = mask.to(at::kBool);
  layers::Carry carry;
  carry.set("tokens", tokens);
  carry.set("key_mask", counts);
  carry.set("token_types", token_types.defined() ? token_types : at::zeros_like(tokens));
  TextEncoding encoding;
  for (const auto& layer : layers_) {
    if (want_hidden && is_block(layer->decl().kind)) encoding.hidden.push_back(carry.get("hidden"));
    layer->forward(carry);
    if (want_hidden && is_block(layer->decl().kind) &&
        encoding.hidden.size() == static_cast<size_t>(options_.depth))
      encoding.hidden.push_back(carry.get("hidden"));
  }
  // CLIP's users take the rows of padding too: the models behind it were trained with them.
  const at::Tensor& sequence = carry.get("hidden");
  encoding.sequence =
      options_.family == "clip_text" ? sequence : sequence * counts.unsqueeze(2).to(sequence.dtype());
  if (carry.has("pooled")) encoding.pooled = carry.get("pooled");
  return encoding;
}

at::Tensor TextEncoder::embed(const at::Tensor& tokens, const at::Tensor& mask) const {
  if (!sentence_) {
    throw InvalidInput(kPlace,
                       "expected modules.json of sentence-transformers in the model's folder, got none. Take "
                       "the rows of encode instead");
  }
  const at::Tensor sequence = encode(tokens, mask).sequence.to(at::kFloat);
  if (sentence_->pooling == weights::SentenceOptions::Pooling::kMean)
    return mean_embedding(sequence, mask, sentence_->normalise);
  const at::Tensor first = sequence.select(1, 0);
  return sentence_->normalise ? first / first.norm(2, {1}, true).clamp_min(1e-12) : first;
}

int64_t TextEncoder::max_tokens() const {
  if (!sentence_ || sentence_->max_tokens == 0) return options_.positions;
  return options_.positions == 0 ? sentence_->max_tokens
                                 : std::min(sentence_->max_tokens, options_.positions);
}

at::Tensor mean_embedding(const at::Tensor& sequence, const at::Tensor& mask, bool normalise) {
  const at::Tensor weights = mask.to(at::kFloat).unsqueeze(2);  // [B, T, 1]
  const at::Tensor mean = (sequence.to(at::kFloat) * weights).sum(1) / weights.sum(1).clamp_min(1e-9);
  if (!normalise) return mean;
  return mean / mean.norm(2, {1}, true).clamp_min(1e-12);
}

}  // namespace chiliad::model
