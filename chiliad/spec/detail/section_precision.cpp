#include "chiliad/spec/detail/sections.h"

namespace chiliad::spec::detail {
namespace {

template <auto Member>
constexpr Access at = kAccess<&RunFile::parallel, Member>;

}  // namespace

Section precision_section() {
  using O = ParallelOptions;
  using enum OnResume;
  return {
      "precision",
      "Number formats.",
      {
          {"compute", at<&O::compute>, ChoiceRule{{"fp32", "bf16", "auto"}}, kFree,
           "format of activations and matrix products; weights, sums of gradients and optimizer are fp32; "
           "auto: bf16 where a new run finds it faster on this machine"},
          {"products", at<&O::products>, ChoiceRule{{"known", "library", "own", "auto"}}, kFree,
           "who multiplies matrices of fp32 on a CPU: libtorch's library, or Chiliad's own kernels "
           "(AVX-512); "
           "known: own on AMD, library elsewhere; auto: what a new run finds faster"},
      }};
}

}  // namespace chiliad::spec::detail
