#pragma once

#include <filesystem>
#include <string>

namespace chiliad::test {

/// A run file of a small language model on bytes: six documents a step, rows of at most 96 positions, six key
/// heads that two, three or six ranks can share.
[[nodiscard]] inline std::string tiny_language_run_file(const std::filesystem::path& index, int64_t steps,
                                                        const std::string& family) {
  return "version: 1\n"
         "run: {seed: 7, steps: " +
         std::to_string(steps) + "}\nmodel: {family: " + family +
         ", width: 48, depth: 2, heads: 12, kv_heads: 6, mlp_width: 36, vocabulary: 258, tied: " +
         (family == "qwen2" ? "true" : "false") +
         "}\n"
         "data: {index: \"" +
         index.string() +
         "\", mode: pack, batch: 6, sequence_length: 64, micro_batch_tokens: 96, loader_threads: 1, "
         "prefetch_steps: 2}\n"
         "optimizer: {lr: 1e-3, weight_decay: 0.01, warmup_steps: 2, ema: 0.99}\n"
         "parallel: {timeout_s: 30}\n"
         "checkpoint: {every: 4}\n"
         "observe: {log_every: 1}\n";
}

}  // namespace chiliad::test
