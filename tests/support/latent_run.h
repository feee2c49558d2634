#pragma once

#include <filesystem>
#include <string>

#include "tests/support/kits.h"

namespace chiliad::test {

/// A folder with a tiny BERT and the tokenizer that belongs to it.
inline void write_text_encoder(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  fs::create_directories(folder);
  const auto golden = golden_kit();
  for (const char* name : {"config.json", "model.safetensors"})
    fs::copy_file(golden / "bert_encoder" / name, folder / name);
  fs::copy_file(golden / "tokenizers" / "wordpiece_uncased" / "tokenizer.json", folder / "tokenizer.json");
}

/// A folder with a tiny autoencoder: 4 channels, 4 pixels a side of a latent.
inline void write_autoencoder(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  fs::create_directories(folder);
  for (const char* name : {"config.json", "diffusion_pytorch_model.safetensors"})
    fs::copy_file(golden_kit() / "vae_three_stages" / name, folder / name);
}

/// A run file of a family on latents, so small that a step takes milliseconds. `folder` has the encoders
/// `vae` and `text`, and the index.
inline std::string latent_run_file(const std::string& family, const std::filesystem::path& folder,
                                   int64_t steps) {
  const std::string path = folder.string();
  std::string model =
      "family: " + family + ", width: 48, depth: 2, heads: 2, patch: 2, latent_channels: 4, latent_pixels: 4";
  if (family == "dit") model += ", sample_size: 8, classes: 5, learned_variance: true";
  if (family != "dit") model += ", text_channels: 36, text_max_tokens: 24";
  if (family == "pixart") model += ", sample_size: 8, size_conditions: true";
  if (family == "sd3") model += ", sample_size: 8, max_positions: 16, pooled_channels: 36, qk_norm: true";
  if (family == "flux") model += ", single_depth: 1, pooled_channels: 36, rope_axes: [8, 8, 8]";
  std::string text =
      "version: 1\nrun: {seed: 7, steps: " + std::to_string(steps) + ", dir: \"" + path + "/run\"}\n";
  text += "model: {" + model + "}\n";
  text += "data: {index: \"" + path +
          "/index\", batch: 6, resolution: 32, bucket_min: 16, bucket_max: 64, flip: true, held_out: 4, "
          "loader_threads: 1, "
          "prefetch_steps: 2, micro_batch_items: 3, max_bad_fraction: 1.0}\n";
  text += "encoders: {pictures: \"" + path + "/vae\", batch: 3";
  text += family == "dit" ? "}\n" : ", text: \"" + path + "/text\"}\n";
  text += family == "dit" ? "objective: {kind: ddpm, prediction: noise}\n"
                          : "objective: {kind: flow, prediction: velocity, dynamic_shift: true}\n";
  return text +
         "optimizer: {lr: 1e-3, warmup_steps: 2, ema: 0.9}\nparallel: {timeout_s: 30}\n"
         "evaluation: {every: 3, samples_every: 6, prompts: [\"3\", \"1\", \"2\"], solver_steps: 2}\n"
         "checkpoint: {every: 4}\nobserve: {log_every: 1}\n";
}

}  // namespace chiliad::test
