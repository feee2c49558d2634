#include "chiliad/generate/pixel_maker.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "chiliad/base/rng.h"
#include "chiliad/model/build_model.h"
#include "chiliad/objective/flow.h"
#include "chiliad/text/byte_tokenizer.h"

namespace chiliad::generate {
namespace {

at::Tensor padded_tokens(const std::vector<std::vector<int32_t>>& rows) {
  size_t longest = 1;
  for (const auto& row : rows) longest = std::max(longest, row.size());
  at::Tensor tokens =
      at::zeros({static_cast<int64_t>(rows.size()), static_cast<int64_t>(longest)}, at::kLong);
  auto* data = tokens.mutable_data_ptr<int64_t>();
  for (const auto& row : rows) {
    std::copy(row.begin(), row.end(), data);
    data += longest;
  }
  return tokens;
}

class PixelDenoising final : public Denoising {
 public:
  PixelDenoising(const spec::RunFile& run, const Network& network, const std::vector<Request>& batch,
                 bool guided)
      : run_(run), network_(network), batch_(batch) {
    const int64_t patch = run.model.patch;
    rows_ = batch[0].height / patch;
    columns_ = batch[0].width / patch;
    const text::ByteTokenizer tokenizer(run.model.text_max_tokens);
    std::vector<std::vector<int32_t>> texts;
    for (const auto& request : batch) texts.push_back(tokenizer.encode(request.prompt));
    if (guided) texts.resize(2 * batch.size(), {text::ByteTokenizer::kNull});  // conditional rows first
    tokens_ = padded_tokens(texts);
  }

  at::Tensor noise() const override {
    const int64_t width = 3 * run_.model.patch * run_.model.patch;
    return initial_noise(batch_, rows_ * columns_ * width)
        .view({std::ssize(batch_), rows_ * columns_, width});
  }
  at::Tensor predict(const at::Tensor& x, double t) const override {
    const at::Tensor input = tokens_.size(0) == x.size(0) ? x : at::cat({x, x});
    const at::Tensor time = at::full({input.size(0)}, t, at::kFloat);
    return network_(model::make_input(run_.model, input, time, tokens_, rows_, columns_)).to(at::kFloat);
  }
  at::Tensor pictures(const at::Tensor& x) const override {
    return objective::unpatchify(x, rows_, columns_, run_.model.patch);
  }

 private:
  const spec::RunFile& run_;
  const Network& network_;
  std::vector<Request> batch_;
  int64_t rows_ = 0;
  int64_t columns_ = 0;
  at::Tensor tokens_;
};

class PixelMaker final : public PictureMaker {
 public:
  PixelMaker(const spec::RunFile& run, Network network) : PictureMaker(run, std::move(network)) {}
  std::unique_ptr<Denoising> begin(const std::vector<Request>& batch,
                                   const Steering& steering) const override {
    return std::make_unique<PixelDenoising>(run(), network(), batch, steering.guided);
  }
};

}  // namespace

std::unique_ptr<PictureMaker> make_pixel_maker(const spec::RunFile& run, Network network) {
  return std::make_unique<PixelMaker>(run, std::move(network));
}

at::Tensor initial_noise(const std::vector<Request>& batch, int64_t count) {
  at::Tensor noise = at::empty({static_cast<int64_t>(batch.size()), count}, at::kFloat);
  float* out = noise.mutable_data_ptr<float>();
  for (const auto& request : batch) {
    Rng rng({request.seed, static_cast<uint64_t>(Draw::kSample)});
    rng.fill_normal({out, static_cast<size_t>(count)});
    out += count;
  }
  return noise;
}

}  // namespace chiliad::generate
