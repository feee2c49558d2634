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
          {"compute", at<&O::compute>, ChoiceRule{{"fp32", "bf16"}}, kFree,
           "format of activations and matrix products; weights, sums of gradients and optimizer are fp32"},
      }};
}

}  // namespace chiliad::spec::detail
