#include "chiliad/spec/detail/sections.h"

namespace chiliad::spec::detail {
namespace {

template <auto Member>
constexpr Access at = kAccess<&RunFile::parallel, Member>;

}  // namespace

Section parallel_section() {
  using O = ParallelOptions;
  using enum OnResume;
  return {
      "parallel",
      "The layout.",
      {
          {"nproc", at<&O::nproc>, WholeRule{1, 65536}, kFree,
           "ranks in all; what the other dimensions leave of them are replicas (dp_replicate)"},
          {"dp_shard", at<&O::dp_shard>, WholeRule{1, 65536}, kFree,
           "data-parallel ranks that share the parameters (FSDP); with replicas: HSDP"},
          {"tp", at<&O::tp>, WholeRule{1, 256}, kFree,
           "ranks that share each layer: tensor and sequence parallelism"},
          {"cp", at<&O::cp>, WholeRule{1, 256}, kFree,
           "ranks that share each sequence: context parallelism; the mesh has its groups, no family is built "
           "for it yet: 1"},
          {"pp", at<&O::pp>, WholeRule{1, 1024}, kFree,
           "ranks with layers of their own: pipeline parallelism; the mesh has its groups, no program is "
           "made for it yet: 1"},
          {"overlap", at<&O::overlap>, BoolRule{}, kFree,
           "exchanges run beside computation; false: awaited at once, to see what they cost"},
          {"reshard_after_forward", at<&O::reshard_after_forward>, BoolRule{}, kFree,
           "dp_shard > 1: let whole parameters go after a layer's forward and gather them again for its "
           "backward (less memory, more traffic)"},
          {"prefetch_layers", at<&O::prefetch_layers>, WholeRule{1, 16}, kFree,
           "dp_shard > 1: how many layers ahead parameters are gathered, and how many layers late reductions "
           "are "
           "awaited; each takes the memory of one more whole layer and its gradients"},
          {"threads", at<&O::threads>, WholeRule{1, 1024}, kFree,
           "threads inside an operator, for each rank; changes the rounding of sums"},
          {"recompute", at<&O::recompute>, ChoiceRule{{"none", "selective", "layers", "auto"}}, kFree,
           "what is made again for the backward, with the same numbers in less memory. selective: norms, "
           "activations of MLPs, copies (cheap); layers: all that is inside a layer (a third more work); "
           "auto: "
           "what each layer needs to fit memory_budget, at the least work"},
          {"memory_budget", at<&O::memory_budget>, BytesRule{0, int64_t{1} << 50}, kFree,
           "recompute auto: most bytes of tensors that a rank may have at once, by prediction (snapshots are "
           "beside it); 0: none"},
          {"transport", at<&O::transport>, ChoiceRule{{"auto", "shm", "gloo"}}, kFree,
           "how ranks reach each other: shared memory on one machine, TCP, or what fits"},
          {"bind", at<&O::bind>, ChoiceRule{{"auto", "none"}}, kFree,
           "auto: threads of a rank stay on cores of one NUMA node, those that load and communicate on cores "
           "of "
           "their own, where the machine has enough; each rank says at start what it has"},
          {"timeout_s", at<&O::timeout_s>, NumberRule{0.0, 86400.0, true, false}, kFree,
           "deadline of every collective, seconds"},
          {"rate_linear", at<&O::rate_linear>, NumberRule{1e3, 1e18}, kFree,
           "FLOP/s of products with weights; rates decide packing alone, `chiliad probe` measures them"},
          {"rate_attention", at<&O::rate_attention>, NumberRule{1e3, 1e18}, kFree,
           "FLOP/s of products between activations"},
          {"rate_elementwise", at<&O::rate_elementwise>, NumberRule{1e3, 1e18}, kFree,
           "activation values/s of everything else"},
          {"rate_launch", at<&O::rate_launch>, NumberRule{1.0, 1e12}, kFree, "operators started/s"},
      }};
}

}  // namespace chiliad::spec::detail
