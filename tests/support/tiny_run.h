#pragma once

#include <filesystem>
#include <string>

namespace chiliad::test {

/// A run file of a model so small that a step takes milliseconds: 6 items a step of several shapes, all
/// random draws switched on, metrics of every step, a checkpoint every 4 steps.
[[nodiscard]] inline std::string tiny_run_file(const std::filesystem::path& index, int64_t steps) {
  return "version: 1\n"
         "run: {seed: 7, steps: " +
         std::to_string(steps) +
         "}\n"
         "model: {width: 32, depth: 2, heads: 2, patch: 8, mlp_ratio: 2, text_layers: 1, text_max_tokens: "
         "24}\n"
         "data: {index: \"" +
         index.string() +
         "\", batch: 6, resolution: 32, micro_batch_items: 3, "
         "crop: random, flip: true, loader_threads: 1, prefetch_steps: 2}\n"
         "optimizer: {lr: 1e-3, weight_decay: 0.01, warmup_steps: 2, ema: 0.99}\n"
         "parallel: {timeout_s: 30}\n"
         "checkpoint: {every: 4}\n"
         "observe: {log_every: 1}\n";
}

}  // namespace chiliad::test
