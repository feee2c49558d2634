#pragma once

#include <cstdint>
#include <string>

namespace chiliad::spec {

/// What a layer keeps for backward: all that autograd wants; all but values that are large and cheap to make
/// again; or its inputs alone.
enum class Recompute { kNone, kSelective, kLayers };

/// Sections `parallel` and `precision`: the layout. Free to change on resume.
struct ParallelOptions {
  int64_t nproc = 1;     ///< ranks in all; dp_replicate is what the other dimensions leave of them
  int64_t dp_shard = 1;  ///< ranks that share the parameters of a replica
  int64_t tp = 1;        ///< ranks that share each layer: tensor and sequence parallelism
  int64_t cp = 1;        ///< ranks that share each sequence: context parallelism
  int64_t pp = 1;        ///< ranks with layers of their own: pipeline parallelism
  bool reshard_after_forward = true;  ///< dp_shard > 1: let whole parameters go and gather them again
  int64_t prefetch_layers = 1;        ///< dp_shard > 1: so many layers are gathered ahead of the one at work
  bool overlap = true;                ///< exchanges beside computation; false: to see what they cost
  int64_t threads = 1;           ///< intra-op threads a rank; part of the layout, for it changes CPU sums
  std::string compute = "fp32";  ///< precision.compute: fp32 or bf16; auto until `chiliad train` has measured
  std::string products = "known";  ///< precision.products: library, own, known; auto as in compute
  std::string recompute = "none";  ///< none, selective, layers; auto: a choice for each layer
  int64_t memory_budget = 0;       ///< bytes a rank, for recompute auto; 0: none given
  std::string transport = "auto";  ///< auto, shm (one machine) or gloo (TCP)
  std::string bind = "auto";       ///< auto: ranks are bound to cores where that helps; none
  double timeout_s = 60.0;         ///< deadline of every collective
  /// Rates of one rank, as `chiliad probe` measures them; used to pack equal work, and nothing else.
  double rate_linear = 1e11;      ///< FLOP/s of products with weights
  double rate_attention = 5e10;   ///< FLOP/s of products between activations
  double rate_elementwise = 5e9;  ///< activation values/s of everything else
  double rate_launch = 3.5e4;     ///< operators started/s

  /// Ranks with items of their own: those along tp, cp and pp share theirs.
  [[nodiscard]] int64_t dp() const { return nproc / (tp * cp * pp); }
  [[nodiscard]] int64_t dp_replicate() const { return dp() / dp_shard; }
};

}  // namespace chiliad::spec
