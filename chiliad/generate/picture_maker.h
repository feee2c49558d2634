#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "chiliad/layers/layer.h"
#include "chiliad/spec/run_file.h"

namespace chiliad::generate {

/// One picture to make.
struct Request {
  std::string prompt;  ///< of class-conditional models, the number of a class
  int32_t width = 0;
  int32_t height = 0;
  uint64_t seed = 0;  ///< of its noise
};

/// How pictures are steered.
struct Steering {
  bool guided = false;             ///< predictions without the prompts are wanted too
  double embedded_guidance = 1.0;  ///< what a network with a guidance input is told
};

/// Pictures of one size on their way from noise.
class Denoising {
 public:
  virtual ~Denoising() = default;
  /// Where they begin: [B, ...] fp32.
  [[nodiscard]] virtual at::Tensor noise() const = 0;
  /// What the network says at time t: 0 to 1 of flow matching, or the whole time of a discrete diffusion.
  /// returns: fp32 [B, ...]; [2 B, ...] where guided, those with their prompts first
  [[nodiscard]] virtual at::Tensor predict(const at::Tensor& x, double t) const = 0;
  /// x: as noise().   returns: fp32 [B, H, W, 3] around [-1, 1]
  [[nodiscard]] virtual at::Tensor pictures(const at::Tensor& x) const = 0;
};

/// A network, as what a picture's way is made with: the carry of its first layer in, its output out.
using Network = std::function<at::Tensor(layers::Carry)>;

/// A diffusion model with what lies around it: tokenizer, or text encoder and autoencoder. Thread-safe.
class PictureMaker {
 public:
  virtual ~PictureMaker() = default;
  /// batch: of one size. Throws InvalidInput for prompts that the model cannot take.
  [[nodiscard]] virtual std::unique_ptr<Denoising> begin(const std::vector<Request>& batch,
                                                         const Steering& steering) const = 0;
  [[nodiscard]] const spec::RunFile& run() const { return run_; }

 protected:
  PictureMaker(const spec::RunFile& run, Network network) : run_(run), network_(std::move(network)) {}
  [[nodiscard]] const Network& network() const { return network_; }

 private:
  spec::RunFile run_;
  Network network_;
};

/// Of the run's family. Reads the frozen encoders that it names; throws InvalidInput as their readers do.
[[nodiscard]] std::unique_ptr<PictureMaker> make_picture_maker(const spec::RunFile& run, Network network);

}  // namespace chiliad::generate
