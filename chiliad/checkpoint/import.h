#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "chiliad/spec/run_file.h"
#include "chiliad/weights/weight_source.h"

namespace chiliad::checkpoint {

struct ImportReport {
  std::filesystem::path path;  ///< the checkpoint
  int64_t num_tensors = 0;     ///< of the model
  int64_t num_bytes = 0;       ///< written
};

/// Writes a checkpoint of step 0 into `folder` (checkpoints/ of a run directory): published weights as fp32,
/// no moments yet, averages equal to the weights. `state` is that of a run before its first step, as JSON.
/// Memory: some hundred MiB, whatever the model's size. progress: bytes done, of. Throws InvalidInput with
/// the whole report unless every tensor of the source is explained and every parameter is there once, in its
/// shape; CorruptData where a value is NaN or infinite.
ImportReport import_weights(const weights::WeightSource& source, const spec::RunFile& run,
                            const std::string& state, const std::filesystem::path& folder,
                            const std::function<void(int64_t, int64_t)>& progress);

}  // namespace chiliad::checkpoint
