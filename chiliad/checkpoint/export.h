#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "chiliad/base/dtype.h"
#include "chiliad/checkpoint/reader.h"

namespace chiliad::checkpoint {

struct ExportOptions {
  DType dtype = DType::kF32;  ///< F32 or BF16, rounded to nearest even
  bool average = false;       ///< the moving average in place of the weights, where a parameter has one
  int64_t file_bytes = 5'000'000'000;  ///< most of one file; more parameters make more files and an index
  /// Of an autoencoder's config.json: models see (latent - shift) * scale. Nothing: 1, and no shift.
  std::optional<double> latent_scale = {};
  double latent_shift = 0.0;
};

struct ExportReport {
  int64_t num_tensors = 0;
  int64_t num_bytes = 0;  ///< of tensors
  int num_files = 0;
  std::filesystem::path missing_tokenizer;  ///< of the run, which was not found where it lay; empty: none
};

/// Writes the model of a checkpoint as Hugging Face does: model.safetensors (diffusers:
/// diffusion_pytorch_model.safetensors), or several with an index.json, config.json, the tokenizer of the run
/// where it has one, and for diffusion transformers scheduler_config.json where diffusers has one for the
/// objective. The folder appears when it is complete; it must not be there before. Until then it
/// is FOLDER.partial-XXXXXX, which an export that is killed leaves behind. Memory: a few MiB, whatever the
/// model's size. progress: bytes done, of. Throws InvalidInput where there is no moving average or the folder
/// exists, CorruptData for damage.
ExportReport export_weights(const Checkpoint& checkpoint, const ExportOptions& options,
                            const std::filesystem::path& folder,
                            const std::function<void(int64_t, int64_t)>& progress);

}  // namespace chiliad::checkpoint
